// Checks what plan recommends of the rows that it predicted.
#include "bench/plan/plan_verdict.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/plan/plan_report.h"
#include "tests/support/contains.h"

namespace syncopate::bench {
namespace {

PlanRow row(const std::string& word, int workers, double samples_per_second) {
  PlanRow row{.variant = parse_variant(word, workers, 1), .timing = {}, .target = std::nullopt};
  row.samples_per_second = samples_per_second;
  row.speed_up = samples_per_second / 100.0;
  row.efficiency = row.speed_up / workers;
  return row;
}

PlanRow stale_row(const std::string& word, int workers, double samples_per_second, double mean,
                  std::int64_t most) {
  PlanRow stale = row(word, workers, samples_per_second);
  stale.timing.staleness_mean = mean;
  stale.timing.staleness_max = most;
  return stale;
}

TEST(PlanRecommendation, IsTheFastest) {
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 2, 150.0), row("multi-worker-mirrored", 8, 300.0),
               row("parameter-server:async", 2, 190.0), row("parameter-server:async", 8, 700.0)};
  const PlanRow* use = judge({}, plan).recommended;
  ASSERT_NE(use, nullptr);
  EXPECT_EQ(use->variant.label, "parameter-server:async");
  EXPECT_EQ(use->variant.workers, 8);
}

TEST(PlanRecommendation, IsNoProcessThatReachesOverSeveralMachines) {
  Plan plan;
  plan.rows = {row("mirrored", 4, 400.0), row("mirrored", 8, 800.0),
               row("central-storage", 8, 800.0), row("multi-worker-mirrored", 8, 800.0)};
  PlanOptions options;
  EXPECT_EQ(judge(options, plan).recommended->variant.label, "multi-worker-mirrored");
  EXPECT_TRUE(contains(verdict_of(options, plan),
                       "mirrored, central-storage: one process on one machine. With more than 1 "
                       "worker (--workers-per-machine)"));
  options.workers_per_machine = 8;
  EXPECT_EQ(judge(options, plan).recommended->variant.label, "mirrored");
  EXPECT_FALSE(contains(verdict_of(options, plan), "one process on one machine"));
  options.workers_per_machine = 1;
  plan.rows.resize(2);
  EXPECT_TRUE(contains(verdict_of(options, plan), "No row can be recommended"));
}

TEST(PlanRecommendation, IsSynchronousWhereThatCostsLittle) {
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 8, 650.0), row("parameter-server:async", 8, 700.0)};
  EXPECT_EQ(judge({}, plan).recommended->variant.label, "multi-worker-mirrored");
}

TEST(PlanRecommendation, IsNeverAboveTheStalenessAtWhichPresetsWereSeenToFail) {
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 8, 400.0),
               stale_row("parameter-server:async", 4, 390.0, 3.0, 9),
               stale_row("parameter-server:async", 8, 790.0, 7.0, 21),
               stale_row("parameter-server:async", 64, 6000.0, 63.0, 781)};
  const PlanRow* use = judge({}, plan).recommended;
  ASSERT_NE(use, nullptr);
  EXPECT_LE(use->timing.staleness_mean, kMostStaleness);
  EXPECT_EQ(use->variant.label, "multi-worker-mirrored");
  const std::string verdict = verdict_of({}, plan);
  EXPECT_TRUE(verdict.starts_with(
      "Most samples per second: parameter-server:async with 64 workers: 6000 samples/s, 60x one "
      "worker, efficiency 93.8%; mean staleness 63, maximum 781.\n"
      "It is not recommended: its mean staleness is above 3.5. In the preset staleness of compare, "
      "accuracy fell by half a point at a mean staleness of 3 and by four points at 7; the preset "
      "has no row between them"))
      << verdict;
  EXPECT_TRUE(contains(verdict,
                       "Most samples per second with a mean staleness of at most 3.5: "
                       "multi-worker-mirrored with 8 workers: 400 samples/s, 4x one worker, "
                       "efficiency 50%; mean staleness 0, maximum 0."));
  std::ostringstream table;
  print_plan(table, {}, plan);
  EXPECT_TRUE(contains(table.str(), "63.0 !"));
  EXPECT_FALSE(contains(table.str(), "3.00 !"));
  EXPECT_TRUE(contains(table.str(), "! mean staleness above 3.5: not recommended"));

  plan.rows.erase(plan.rows.begin(), plan.rows.begin() + 2);
  EXPECT_EQ(judge({}, plan).recommended, nullptr);
  EXPECT_TRUE(contains(verdict_of({}, plan), "No row has a mean staleness of at most 3.5"));
}

// Returns a plan of two rows: one reached the target after 10 s, the other is stale.
Plan trained_and_stale() {
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 8, 300.0),
               stale_row("parameter-server:async", 8, 700.0, 7.0, 20)};
  plan.rows[0].target = {.seconds = 10.0};
  return plan;
}

TEST(PlanRecommendation, IsARowThatReachedTheTargetHoweverStaleItsGradients) {
  PlanOptions options;
  options.time_to_target = true;
  Plan plan = trained_and_stale();
  const auto expect = [&](double seconds, const char* label, const std::string& words) {
    plan.rows[1].target = {.seconds = seconds};
    EXPECT_EQ(judge(options, plan).recommended->variant.label, label);
    EXPECT_TRUE(contains(verdict_of(options, plan), words));
  };
  expect(2.0, "parameter-server:async",
         "Shortest time to 95%: 2.00 virtual s by parameter-server:async with 8 workers");
  // A synchronous row that is hardly slower is recommended, and is not called the shortest.
  expect(9.5, "multi-worker-mirrored",
         "Shortest time to 95%: 9.50 virtual s by parameter-server:async with 8 workers");
  expect(9.5, "multi-worker-mirrored",
         "Recommended (rows within 10% count as equal): 10.0 virtual s by multi-worker-mirrored");
}

TEST(PlanRecommendation, IsNoStaleRowThatMissedTheTargetOrFailed) {
  PlanOptions options;
  options.time_to_target = true;
  Plan plan = trained_and_stale();
  for (const TargetTime& target :
       {TargetTime{.seconds = std::nullopt, .accuracy = 0.3},
        TargetTime{.seconds = std::nullopt, .failure = "the loss is not finite"}}) {
    plan.rows[1].target = target;
    EXPECT_TRUE(is_too_stale(plan.rows[1]));
    const std::string verdict = verdict_of(options, plan);
    EXPECT_TRUE(contains(verdict, "It is not recommended: its mean staleness is above 3.5"));
  }
}

TEST(PlanRecommendation, DoesNotAddWorkersWithoutAGain) {
  Plan plan;
  plan.rows = {row("parameter-server:async", 8, 650.0), row("parameter-server:async", 12, 700.0)};
  EXPECT_EQ(judge({}, plan).recommended->variant.workers, 8);
}

TEST(PlanRecommendation, IsNotAThousandWorkersThatAreBarelyFasterThanOne) {
  Plan plan;
  plan.rows = {row("one-device", 1, 100.0), row("multi-worker-mirrored", 1000, 128.0)};
  EXPECT_EQ(judge({}, plan).recommended->variant.label, "one-device");
  const std::string verdict = verdict_of({}, plan);
  EXPECT_TRUE(
      verdict.starts_with("Most samples per second: multi-worker-mirrored with 1000 workers"))
      << verdict;
  EXPECT_TRUE(contains(verdict,
                       "Several workers do not pay here: those with an efficiency of at least 50% "
                       "train hardly more samples per second.\nRecommended, with an efficiency "
                       "of at least 50% (rows within 10% count as equal): one-device with 1 "
                       "worker:"));
}

TEST(PlanRecommendation, IsByTimeToTargetWhereThatIsKnown) {
  PlanOptions options;
  options.time_to_target = true;
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 8, 300.0), row("parameter-server:async", 8, 700.0),
               row("parameter-server:async", 1000, 9000.0)};
  plan.rows[0].target = {.seconds = 10.0};
  plan.rows[1].target = {.seconds = std::nullopt, .accuracy = 0.3};
  EXPECT_EQ(judge(options, plan).recommended->variant.label, "multi-worker-mirrored");
  plan.rows[0].target->seconds.reset();
  EXPECT_EQ(judge(options, plan).recommended, nullptr);
  EXPECT_TRUE(contains(verdict_of(options, plan), "No row reached 95%"));
}

TEST(PlanVerdict, ConcludesNothingFromMeasurementsOfABusyMachine) {
  Plan plan;
  plan.one_worker_samples_per_second = 100.0;
  plan.rows = {row("one-device", 1, 100.0), row("multi-worker-mirrored", 2, 90.0),
               row("multi-worker-mirrored", 8, 700.0)};
  for (PlanRow& one : plan.rows) one.target = {.seconds = 10.0};
  PlanOptions options;
  for (const bool trains : {false, true}) {
    options.time_to_target = trains;
    plan.foreign_share = 0.12;
    EXPECT_NE(judge(options, plan).recommended, nullptr) << "the limit itself";
    EXPECT_FALSE(nlohmann::json::parse(json_of(options, plan)).at("recommended").is_null());
    plan.foreign_share = 0.13;
    const PlanVerdict verdict = judge(options, plan);
    EXPECT_FALSE(verdict.is_quiet);
    EXPECT_EQ(verdict.recommended, nullptr);
    EXPECT_EQ(verdict.fastest, nullptr);
    EXPECT_TRUE(verdict.slower_than_one_machine.empty());
    const std::string text = verdict_of(options, plan);
    EXPECT_TRUE(contains(text, "used 13% of one CPU"));
    for (const char* word : {"Recommended", "Shortest time", "Most samples", "Use ", "\n"}) {
      EXPECT_FALSE(contains(text, word));
    }
    const auto object = nlohmann::json::parse(json_of(options, plan));
    EXPECT_TRUE(object.at("recommended").is_null());
    EXPECT_TRUE(object.at("most_samples_per_second").is_null());
    EXPECT_FALSE(object.at("is_quiet").get<bool>());
  }
}

TEST(PlanVerdict, NamesTheRowsOfSeveralMachinesThatAreSlowerThanOne) {
  Plan plan;
  plan.one_worker_samples_per_second = 100.0;
  plan.rows = {row("mirrored", 8, 20.0),  // one process
               row("multi-worker-mirrored", 2, 60.0),
               row("multi-worker-mirrored", 4, 99.0),
               row("multi-worker-mirrored", 64, 300.0),
               row("parameter-server:async", 1, 50.0),
               row("parameter-server:async", 4, 100.0)};
  PlanOptions options;
  EXPECT_EQ(judge(options, plan).slower_than_one_machine,
            (std::vector<const PlanRow*>{&plan.rows[1], &plan.rows[2]}));
  EXPECT_TRUE(contains(verdict_of(options, plan),
                       "Several machines train fewer samples per second than one: "
                       "multi-worker-mirrored with 2 and 4 workers.\n"));
  // A machine with four workers trains 350 samples/s, so 64 workers on 16 machines are slower, too.
  options.workers_per_machine = 4;
  plan.rows[0] = row("mirrored", 4, 350.0);
  EXPECT_EQ(judge(options, plan).slower_than_one_machine,
            (std::vector<const PlanRow*>{&plan.rows[3]}));
  plan.rows.pop_back();
  plan.rows[0].samples_per_second = 200.0;
  EXPECT_TRUE(judge(options, plan).slower_than_one_machine.empty());
  EXPECT_FALSE(contains(verdict_of(options, plan), "Several machines"));
}

TEST(PlanVerdict, StatesWhereScalingEndsAndWhatWasNotExamined) {
  Plan plan;
  plan.rows = {row("multi-worker-mirrored", 2, 190.0), row("multi-worker-mirrored", 8, 600.0),
               row("multi-worker-mirrored", 64, 1900.0), row("multi-worker-mirrored", 1000, 400.0)};
  const std::string verdict = verdict_of({}, plan);
  EXPECT_TRUE(contains(verdict, "below half of linear with 64 workers (not yet with 8)",
                       "more than 64 workers train no more samples per second",
                       "Statistical efficiency is not in it"));
}

}  // namespace
}  // namespace syncopate::bench
