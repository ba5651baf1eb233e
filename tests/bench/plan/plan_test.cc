// Checks what plan predicts for a described cluster, and what it refuses.
#include "bench/plan/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/compare/presets.h"
#include "bench/plan/plan_verdict.h"
#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
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

std::string output_of(const PlanOptions& options) {
  std::ostringstream out;
  run_plan(options, out);
  return out.str();
}

// The printed plan, and the one of --json.
struct PlanOutput {
  std::string text;
  nlohmann::json json;
};

PlanOutput outputs_of(PlanOptions options) {
  const TemporaryFolder folder;
  options.json = folder / "plan.json";
  std::string text = output_of(options);
  return {std::move(text), nlohmann::json::parse(std::ifstream(options.json))};
}

// Returns a plan whose rows are trained, of two workers that sum their gradients.
PlanOptions trained_plan() {
  PlanOptions options = small_plan();
  options.workers = {2};
  options.strategies = {"multi-worker-mirrored"};
  options.time_to_target = true;
  return options;
}

TEST(Plan, ReportsItsMeasurementsAndHasARowForEachStrategyAndNumberOfWorkers) {
  PlanOptions options = small_plan();
  options.workers = {1, 8, 300};
  const std::string out = output_of(options);
  EXPECT_TRUE(contains(out, "measured here: a step of mlp with 8 samples"));
  for (const char* word : kEveryStrategy) EXPECT_TRUE(contains(out, word));
  EXPECT_TRUE(contains(out, "left out: parameter-server:sync+backup:1 with 1:"));
  const bool is_quiet = out.find("NOT QUIET") == std::string::npos;
  const auto has = [&](const char* words) { return out.find(words) != std::string::npos; };
  EXPECT_EQ(has("\n\nMost samples per second: "), is_quiet) << out;
  EXPECT_EQ(has("\n\nNo row is recommended"), !is_quiet) << out;
  EXPECT_TRUE(contains(out, "measured here: a server applies a gradient of",
                       "prediction for 2 workers on this machine:"));
}

TEST(Plan, ShowsTheStagesOfAPipelineAndTheirMemory) {
  PlanOptions options = small_plan();
  options.service_time = "constant:6";
  options.workers = {2, 64};
  options.strategies = {"pipeline:6"};
  const auto [out, plan] = outputs_of(options);
  EXPECT_TRUE(contains(out, "stages of pipeline:6, 2 workers: 6 micro-batches of 8 samples",
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
  const auto error_of = [](const PlanOptions& options) {
    return message_of<UsageError>([&] { output_of(options); });
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
  EXPECT_TRUE(
      contains(message_of<UsageError>([&] { output_of(options); }), "--strategies pipeline:0"));
}

TEST(Plan, WritesItsMeasurementsAndRowsAsJson) {
  PlanOptions options = small_plan();
  options.workers = {64};
  options.workers_per_machine = 8;
  options.strategies = {"multi-worker-mirrored", "parameter-server:async"};
  const nlohmann::json plan = outputs_of(options).json;
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
  PlanOptions options = trained_plan();
  options.workers = {2, 100};
  options.target_accuracy = 0.0;  // The first evaluation reaches this target.
  const auto [out, plan] = outputs_of(options);
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
  PlanOptions options = trained_plan();
  options.train_flags = {"--lr-factor", "0.5"};  // of a schedule that was not chosen
  EXPECT_TRUE(contains(message_of<std::runtime_error>([&] { output_of(options); }), "--lr-factor"));
}

TEST(Plan, RefusesWhatTheVirtualClockCannotTrain) {
  PlanOptions options = small_plan();
  options.time_to_target = true;
  options.train_flags = {"--clip-norm", "1"};
  EXPECT_THROW(output_of(options), UsageError);
}

TEST(Plan, MeasuresTheNetworkThatItsRowsTrain) {
  PlanOptions options = trained_plan();
  options.train_flags = {"--head", "dense:16"};
  const DataSplits data = open_dataset(options.data, {.cache_dir = {}, .seed = 1});
  const ArenaLayout layout =
      network_for_data("mlp", options.data, data, {.head = "dense:16"}).parameter_layout();
  std::int64_t parameters = 0;
  for (std::size_t i = 0; i < layout.entries().size(); ++i) parameters += layout.size(i);
  EXPECT_TRUE(contains(output_of(options), fmt::format("{} parameters", parameters)));
}

}  // namespace
}  // namespace syncopate::bench
