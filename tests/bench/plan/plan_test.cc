// Checks what plan predicts for a described cluster and what it recommends.
#include "bench/plan/plan.h"
#include "bench/compare/presets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/plan/plan_report.h"
#include "bench/plan/plan_verdict.h"
#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

TEST(PlanServiceTime, IsTheMeasuredTimeUnlessAnotherIsGiven) {
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

TEST(Plan, ReportsItsMeasurementsAndHasARowForEachStrategyAndNumberOfWorkers) {
  PlanOptions options = small_plan();
  options.workers = {1, 8, 300};
  std::ostringstream out;
  run_plan(options, out);
  EXPECT_TRUE(contains(out.str(), "measured here: a step of mlp with 8 samples"));
  for (const char* word : kEveryStrategy) EXPECT_TRUE(contains(out.str(), word));
  EXPECT_TRUE(contains(out.str(), "left out: parameter-server:sync+backup:1 with 1:"));
  const bool is_quiet = out.str().find("NOT QUIET") == std::string::npos;
  const auto has = [&](const char* words) { return out.str().find(words) != std::string::npos; };
  EXPECT_EQ(has("\n\nMost samples per second: "), is_quiet) << out.str();
  EXPECT_EQ(has("\n\nNo row is recommended"), !is_quiet) << out.str();
  EXPECT_TRUE(contains(out.str(), "measured here: a server applies a gradient of",
                       "prediction for 2 workers on this machine:"));
}

TEST(Plan, ShowsTheStagesOfAPipelineAndTheirMemory) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / fmt::format("stages-{}.json", ::getpid());
  PlanOptions options = small_plan();
  options.service_time = "constant:6";
  options.workers = {2, 64};
  options.strategies = {"pipeline:6"};
  options.json = file;
  std::ostringstream out;
  run_plan(options, out);
  const auto plan = nlohmann::json::parse(std::ifstream(file));
  std::filesystem::remove(file);
  EXPECT_TRUE(contains(out.str(), "stages of pipeline:6, 2 workers: 6 micro-batches of 8 samples",
                       "would be idle 14% of it",
                       "left out: pipeline:6 with 64: network mlp cannot be cut"));
  const auto& row = plan.at("rows").at(0).at("pipeline");
  EXPECT_NEAR(row.at("idle_share_of_equal_stages").get<double>(), 1.0 / 7.0, 1e-12);
  double busy = 0.0;
  for (const auto& stage : row.at("stages")) busy += 1.0 - stage.at("idle_share").get<double>();
  // Both stages together compute 6 times 6 ms in a step.
  EXPECT_NEAR(busy * row.at("step_seconds").get<double>(), 36e-3, 1e-4);
}

PlanOptions plan_of_a_pipeline() {
  PlanOptions options = small_plan();
  options.model = "mnist-cnn";
  options.data = "synthetic:1x12x12:4:128";
  options.workers = {2, 3};
  options.strategies = {"pipeline:4"};
  return options;
}

std::string output_of(const PlanOptions& options) {
  std::ostringstream out;
  run_plan(options, out);
  return out.str();
}

TEST(Plan, CutsPipelinesBehindTheNamedNodes) {
  PlanOptions options = plan_of_a_pipeline();
  const std::string equal = output_of(options);
  EXPECT_TRUE(contains(equal, "pipeline:4, 2 workers"));
  for (const char* node : {"conv1", "fc1"}) {
    options.cut = {node};
    const std::string out = output_of(options);
    EXPECT_TRUE(
        contains(out, fmt::format("\n0      {} ", node),
                 fmt::format("left out: pipeline:4 with 3: --cut {} gives 2 stages", node)));
  }
  // The flag of train behind --, and in braces, which is for its variant alone.
  options.cut.clear();
  options.workers = {2};
  options.time_to_target = true;
  options.target_accuracy = 0.0;
  options.epochs = 1;
  options.strategies = {"pipeline:4", "pipeline:5{cut=conv1}"};
  options.train_flags = {"--cut", "fc1"};
  const std::string out = output_of(options);
  EXPECT_TRUE(contains(out, "\n0      fc1 ", "\n0      conv1 "));
}

TEST(Plan, RefusesACutThatNoPipelineHas) {
  const auto error_of = [](const PlanOptions& options) -> std::string {
    try {
      return output_of(options);
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  PlanOptions options = plan_of_a_pipeline();
  options.cut = {"nope"};
  EXPECT_EQ(error_of(options),
            "--cut nope: network mnist-cnn cannot be cut there; choose from conv1, fc1");
  options.cut = {"conv1"};
  options.workers = {3, 8};
  EXPECT_EQ(error_of(options), "--cut conv1: gives 2 stages, but --workers 3,8; give --workers 2");
  options.strategies = {"one-device", "mirrored"};
  EXPECT_EQ(error_of(options),
            "--cut conv1: no pipeline is planned; leave it out, or give --strategies pipeline");
}

// A measurement takes seconds; a wrong word is found before.
TEST(Plan, ParsesItsStrategiesBeforeItOpensTheData) {
  PlanOptions options = small_plan();
  options.data = "mnist:/nowhere";
  options.strategies = {"one-device", "pipeline:0"};
  std::ostringstream out;
  EXPECT_TRUE(
      contains(message_of<UsageError>([&] { run_plan(options, out); }), "--strategies pipeline:0"));
}

TEST(Plan, WritesItsMeasurementsAndRowsAsJson) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / fmt::format("plan-{}.json", ::getpid());
  PlanOptions options = small_plan();
  options.workers = {64};
  options.workers_per_machine = 8;
  options.strategies = {"multi-worker-mirrored", "parameter-server:async"};
  options.json = file;
  std::ostringstream out;
  run_plan(options, out);
  const auto plan = nlohmann::json::parse(std::ifstream(file));
  std::filesystem::remove(file);
  EXPECT_GT(plan.at("server_calibration").at("bytes_per_second").get<double>(), 0.0);
  EXPECT_NEAR(plan.at("most_updates_per_second").get<double>() *
                  plan.at("server_calibration").at("update_seconds").get<double>(),
              1.0, 1e-9);
  const auto& check = plan.at("prediction_check");
  EXPECT_NEAR(check.at("relative_error").get<double>(),
              check.at("predicted_samples_per_second").get<double>() /
                      check.at("measured_samples_per_second").get<double>() -
                  1.0,
              1e-9);
  EXPECT_EQ(plan.at("rows").size(), 2U);
  EXPECT_TRUE(plan.at("rows").back().at("is_too_stale").get<bool>());
  // Other programs may use the machine of the test.
  const bool is_quiet = plan.at("foreign_share_of_a_core").get<double>() <= kForeignLimit;
  EXPECT_EQ(plan.at("is_quiet").get<bool>(), is_quiet);
  EXPECT_EQ(!plan.at("recommended").is_null(), is_quiet) << plan.at("recommended");
  EXPECT_EQ(!plan.at("most_samples_per_second").is_null(), is_quiet);
  if (is_quiet) {
    EXPECT_EQ(plan.at("recommended").at("strategy"), "multi-worker-mirrored");
  }
  EXPECT_EQ(plan.at("most_staleness").get<double>(), kMostStaleness);
}

TEST(Plan, TrainsForTheTimeToATarget) {
  PlanOptions options = small_plan();
  options.workers = {2, 100};
  options.strategies = {"multi-worker-mirrored"};
  options.time_to_target = true;
  options.target_accuracy = 0.0;  // The first evaluation reaches this target.
  options.json =
      std::filesystem::path(testing::TempDir()) / fmt::format("target-{}.json", ::getpid());
  const std::string out = output_of(options);
  const auto plan = nlohmann::json::parse(std::ifstream(options.json));
  std::filesystem::remove(options.json);
  const auto& rows = plan.at("rows");
  EXPECT_TRUE(rows.at(0).at("time_to_target").contains("virtual_seconds")) << rows.at(0);
  EXPECT_FALSE(rows.back().contains("time_to_target")) << "100 workers are not trained";
  for (const char* words :
       {"Shortest time to 0%: ", "virtual s by multi-worker-mirrored with 2 workers",
        "rows with larger updates were trained at larger learning rates"}) {
    EXPECT_EQ(out.find(words) != std::string::npos, plan.at("is_quiet").get<bool>()) << out;
  }
}

TEST(Plan, RefusesInitialWeightsThatAreMissingBeforeItMeasures) {
  PlanOptions options = small_plan();
  options.time_to_target = true;
  options.train_flags = {"--init-from", "/nonexistent/weights.safetensors"};
  std::ostringstream out;
  EXPECT_THROW(run_plan(options, out), std::runtime_error);
  EXPECT_EQ(out.str(), "");
}

TEST(Plan, FailsIfNoRowCanBeTrained) {
  PlanOptions options = small_plan();
  options.workers = {2};
  options.strategies = {"multi-worker-mirrored"};
  options.time_to_target = true;
  options.train_flags = {"--lr-factor", "0.5"};  // of a schedule that was not chosen
  std::ostringstream out;
  EXPECT_TRUE(
      contains(message_of<std::runtime_error>([&] { run_plan(options, out); }), "--lr-factor"));
}

TEST(Plan, RefusesWhatTheVirtualClockCannotTrain) {
  PlanOptions options = small_plan();
  options.time_to_target = true;
  options.train_flags = {"--clip-norm", "1"};
  std::ostringstream out;
  EXPECT_THROW(run_plan(options, out), UsageError);
}

TEST(Plan, MeasuresTheNetworkThatItsRowsTrain) {
  PlanOptions options = small_plan();
  options.workers = {2};
  options.strategies = {"multi-worker-mirrored"};
  options.time_to_target = true;
  options.train_flags = {"--head", "dense:16"};
  const DataSplits data = open_dataset(options.data, {.cache_dir = {}, .seed = 1});
  const ArenaLayout layout =
      network_for_data("mlp", options.data, data, {.head = "dense:16"}).parameter_layout();
  std::int64_t parameters = 0;
  for (std::size_t i = 0; i < layout.entries().size(); ++i) parameters += layout.size(i);
  std::ostringstream out;
  run_plan(options, out);
  EXPECT_TRUE(contains(out.str(), fmt::format("{} parameters", parameters)));
}

}  // namespace
}  // namespace syncopate::bench
