// Checks what plan predicts for a described cluster and what it recommends.
#include "bench/plan/plan.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "bench/plan/plan_report.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

TEST(PlanServiceTime, IsWhatWasMeasuredUnlessSomethingElseIsSaid) {
  FaultInjection faults;
  set_service_time("", 0.002, faults);
  EXPECT_EQ(faults.compute_seconds, 0.002);
  EXPECT_EQ(faults.service_time.kind, ServiceTimeKind::kNone);
  set_service_time("exponential", 0.002, faults);
  EXPECT_EQ(faults.compute_seconds, 0.0);
  EXPECT_EQ(faults.service_time.kind, ServiceTimeKind::kExponential);
  EXPECT_DOUBLE_EQ(faults.service_time.mean_milliseconds, 2.0);
  set_service_time("lognormal:20:0.3", 0.002, faults);
  EXPECT_EQ(faults.compute_seconds, 0.0);
  EXPECT_DOUBLE_EQ(faults.service_time.mean_milliseconds, 20.0);
  set_service_time("compute+exponential:20", 0.002, faults);
  EXPECT_EQ(faults.compute_seconds, 0.002);
  EXPECT_DOUBLE_EQ(faults.service_time.mean_milliseconds, 20.0);
  EXPECT_THROW(set_service_time("compute+", 0.002, faults), UsageError);
  EXPECT_THROW(set_service_time("uniform:3", 0.002, faults), UsageError);
}

PlanRow row(const std::string& word, int workers, double samples_per_second) {
  PlanRow row{.variant = parse_variant(word, workers, 1), .timing = {}, .target = std::nullopt};
  row.samples_per_second = samples_per_second;
  row.speed_up = samples_per_second / 100.0;
  row.efficiency = row.speed_up / workers;
  return row;
}

TEST(PlanRecommendation, IsTheFastest) {
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 2, 150.0), row("multi-worker-mirrored", 8, 300.0),
               row("parameter-server:async", 2, 190.0), row("parameter-server:async", 8, 700.0)};
  const PlanRow* use = recommended({}, plan);
  ASSERT_NE(use, nullptr);
  EXPECT_EQ(use->variant.label, "parameter-server:async");
  EXPECT_EQ(use->variant.workers, 8);
}

TEST(PlanRecommendation, IsNoProcessThatReachesOverSeveralMachines) {
  Plan plan;
  plan.rows = {row("mirrored", 4, 400.0), row("mirrored", 8, 800.0),
               row("central-storage", 8, 800.0), row("multi-worker-mirrored", 8, 800.0)};
  PlanOptions options;
  EXPECT_EQ(recommended(options, plan)->variant.label, "multi-worker-mirrored");
  EXPECT_NE(verdict_of(options, plan)
                .find("mirrored, central-storage: one process on one machine. With more than 1 "
                      "worker (--workers-per-machine)"),
            std::string::npos)
      << verdict_of(options, plan);
  options.workers_per_machine = 8;
  EXPECT_EQ(recommended(options, plan)->variant.label, "mirrored");
  EXPECT_EQ(verdict_of(options, plan).find("one process on one machine"), std::string::npos);
  options.workers_per_machine = 1;
  plan.rows.resize(2);
  EXPECT_NE(verdict_of(options, plan).find("No row can be recommended"), std::string::npos);
}

TEST(PlanRecommendation, KeepsStepWhereThatCostsLittle) {
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 8, 650.0), row("parameter-server:async", 8, 700.0)};
  EXPECT_EQ(recommended({}, plan)->variant.label, "multi-worker-mirrored");
}

TEST(PlanRecommendation, DoesNotSpendWorkersOnNothing) {
  Plan plan;
  plan.rows = {row("parameter-server:async", 8, 650.0), row("parameter-server:async", 12, 700.0)};
  EXPECT_EQ(recommended({}, plan)->variant.workers, 8);
}

TEST(PlanRecommendation, IsNotAThousandWorkersThatAreHardlyFasterThanOne) {
  Plan plan;
  plan.rows = {row("one-device", 1, 100.0), row("multi-worker-mirrored", 1000, 128.0)};
  EXPECT_EQ(recommended({}, plan)->variant.label, "one-device");
  EXPECT_NE(verdict_of({}, plan).find(
                "most samples per second of all: multi-worker-mirrored with 1000 workers"),
            std::string::npos);
}

TEST(PlanRecommendation, IsByTimeToTargetWhereThatIsKnown) {
  PlanOptions options;
  options.time_to_target = true;
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 8, 300.0), row("parameter-server:async", 8, 700.0),
               row("parameter-server:async", 1000, 9000.0)};
  plan.rows[0].target = {.seconds = 10.0};
  plan.rows[1].target = {.seconds = std::nullopt, .accuracy = 0.3};
  EXPECT_EQ(recommended(options, plan)->variant.label, "multi-worker-mirrored");
  plan.rows[0].target->seconds.reset();
  EXPECT_EQ(recommended(options, plan), nullptr);
  EXPECT_NE(verdict_of(options, plan).find("No row reached 95%"), std::string::npos);
}

TEST(PlanVerdict, SaysWhereScalingEndsAndWhatWasNotLookedAt) {
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 2, 190.0), row("multi-worker-mirrored", 8, 600.0),
               row("multi-worker-mirrored", 64, 1900.0), row("multi-worker-mirrored", 1000, 400.0)};
  const std::string verdict = verdict_of({}, plan);
  EXPECT_NE(verdict.find("below half of linear with 64 workers (not yet with 8)"),
            std::string::npos)
      << verdict;
  EXPECT_NE(verdict.find("more than 64 workers train no more samples per second"),
            std::string::npos)
      << verdict;
  EXPECT_NE(verdict.find("Statistical efficiency is not in it"), std::string::npos) << verdict;
}

PlanOptions small_plan() {
  PlanOptions options;
  options.model = "mlp";
  options.data = "synthetic:1x8x8:4:512";
  options.batch_size_per_replica = 8;
  options.calibrate_steps = 20;
  options.gradients = 2000;
  options.service_time = "exponential:5";
  options.strategies.assign(kEveryStrategy.begin(), kEveryStrategy.end());
  return options;
}

TEST(Plan, SaysWhatItMeasuredAndHasARowForEachStrategyAndNumberOfWorkers) {
  PlanOptions options = small_plan();
  options.workers = {1, 8, 300};
  std::ostringstream out;
  run_plan(options, out);
  EXPECT_NE(out.str().find("measured here: a step of mlp with 8 samples"), std::string::npos);
  for (const char* word : kEveryStrategy) {
    EXPECT_NE(out.str().find(word), std::string::npos) << out.str();
  }
  EXPECT_NE(out.str().find("left out: parameter-server:sync+backup:1 with 1:"), std::string::npos)
      << out.str();
  EXPECT_NE(out.str().find("Use "), std::string::npos);
}

TEST(Plan, TrainsForTheTimeToATarget) {
  PlanOptions options = small_plan();
  options.workers = {2, 100};
  options.strategies = {"multi-worker-mirrored"};
  options.time_to_target = true;
  options.target_accuracy = 0.0;  // The first evaluation reaches this target.
  std::ostringstream out;
  run_plan(options, out);
  EXPECT_NE(out.str().find("virtual s to 0%"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("Use multi-worker-mirrored with 2 workers"), std::string::npos)
      << out.str();
}

}  // namespace
}  // namespace syncopate::bench
