#include "bench/compare/report/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/compare/report/comparison_report.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/summary.h"
#include "models/base/errors.h"
#include "tests/bench/compare/report/made_up.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

TEST(TimeToTarget, IsThatOfTheFirstEvaluationAtOrAboveIt) {
  const ComparedRun run = made_up_run(1, {0.5, 0.949, 0.95, 0.94, 0.97}, 0.01);
  const auto point = time_to_target(*run.result, 0.95);
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->samples, 300);
  EXPECT_DOUBLE_EQ(point->seconds, 3.0);
  EXPECT_DOUBLE_EQ(point->gap_seconds, 1.0);
  EXPECT_FALSE(time_to_target(*run.result, 0.98).has_value());
}

TEST(Summary, HasMeanAndDeviationOverSeeds) {
  const auto rows = summarise(
      made_up_comparison({made_up_variant("mirrored", 4, {10, 20, 30}, {0.96, 0.97, 0.98})}));
  EXPECT_DOUBLE_EQ(rows[0].seconds_to_target->mean, 20.0);
  EXPECT_DOUBLE_EQ(*rows[0].seconds_to_target->deviation, 10.0);
  EXPECT_DOUBLE_EQ(rows[0].accuracy->mean, 0.97);
  EXPECT_EQ(rows[0].reached, 3);
  EXPECT_TRUE(rows[0].is_complete());
  EXPECT_FALSE(rows[0].staleness.has_value());
}

TEST(Summary, HasNoStalenessForSynchronousVariants) {
  ComparedVariant variant = made_up_variant("server:sync", 2, {10, 20}, {0.96, 0.97});
  for (ComparedRun& run : variant.runs) run.result->summary.staleness.emplace_back();
  variant.is_synchronous = true;
  EXPECT_FALSE(summarise(made_up_comparison({variant})).front().staleness);
  variant.is_synchronous = false;
  EXPECT_TRUE(summarise(made_up_comparison({variant})).front().staleness);
}

TEST(Summary, HasNoMeanTimeUnlessEveryEndedRunReachedTheTarget) {
  ComparedVariant variant = made_up_variant("async", 4, {10, 20}, {0.96, 0.97});
  variant.runs.push_back(made_up_run(3, {0.5, 0.6, 0.7}, 0.1));
  auto row = summarise(made_up_comparison({variant}))[0];
  EXPECT_FALSE(row.seconds_to_target.has_value());
  EXPECT_EQ(row.reached, 2);

  variant.runs[2] = failed_run(3, "the loss is NaN");
  row = summarise(made_up_comparison({variant}))[0];
  EXPECT_FALSE(row.seconds_to_target.has_value());
  EXPECT_EQ(row.failed, 1);
  EXPECT_EQ(row.failures[0], "seed 3: the loss is NaN");

  variant.runs[2] = pending_run();
  row = summarise(made_up_comparison({variant}))[0];
  EXPECT_TRUE(row.seconds_to_target.has_value());
  EXPECT_FALSE(row.is_complete());
}

TEST(Summary, HasEachNoteOnceWithItsSeeds) {
  ComparedVariant variant = made_up_variant("async", 4, {10, 20}, {0.96, 0.97});
  variant.runs[0].result->notes = {"of all", "of one"};
  variant.runs[1].result->notes = {"of all"};
  const auto row = summarise(made_up_comparison({variant}))[0];
  EXPECT_EQ(row.notes, (std::vector<std::string>{"of all", "seed 1: of one"}));
}

TEST(Summary, AddsTheWorkersToARepeatedLabel) {
  const auto rows = summarise(made_up_comparison({made_up_variant("mirrored", 1, {10}, {0.97}),
                                                  made_up_variant("mirrored", 2, {5}, {0.97}),
                                                  made_up_variant("async", 2, {5}, {0.97})}));
  EXPECT_EQ(rows[0].name, "mirrored, 1 worker");
  EXPECT_EQ(rows[1].name, "mirrored, 2 workers");
  EXPECT_EQ(rows[2].name, "async");
}

// A worker counts the samples of all its gradients, a run only those that were used.
TEST(Summary, HasTheShareOfGradientsThatWereComputedInVain) {
  ComparedVariant backup = made_up_variant("server:sync+backup:1", 4, {10, 11}, {0.97, 0.97});
  backup.drops = "gradients that come last";
  for (ComparedRun& run : backup.runs) {
    run.result->summary.samples = 300;
    run.result->times.resize(4);
    for (WorkerMetrics& worker : run.result->times) worker.samples = 100;
  }
  const auto dropped = [](const ComparedVariant& variant) {
    return summarise(made_up_comparison({variant})).front().dropped_gradients;
  };
  EXPECT_DOUBLE_EQ(dropped(backup).value_or(0.0), 0.25);
  for (ComparedRun& run : backup.runs) run.result->faults = {"--kill", "worker=1,at=1s"};
  EXPECT_FALSE(dropped(backup).has_value()) << "a killed worker's samples are not known";
  EXPECT_FALSE(dropped(made_up_variant("ring", 4, {10}, {0.97})).has_value());
}

class ComparisonFolder : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(dir_ / "runs"); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
  }

  const TemporaryFolder dir_;
};

TEST_F(ComparisonFolder, IsReadWithItsRuns) {
  write(
      "comparison.json",
      R"({"command":"compare --seeds 2","target_accuracy":0.9,"budget":"2 epochs","clock":"virtual",
            "trouble":"","variants":[{"label":"a","workers":3,"keeps_step":true,"distributed":true,
            "runs":["runs/a1.jsonl","a2.jsonl","runs/a3.jsonl"]}]})");
  write("runs/a1.jsonl",
        "{\"event\":\"run\",\"label\":\"a\",\"seed\":1,\"workers\":3}\n"
        "{\"event\":\"failure\",\"reason\":\"no\"}\n");
  write("runs/a2.jsonl", "{\"event\":\"run\",\"label\":\"a\",\"seed\":2,\"workers\":3}\n");
  const Comparison comparison = read_comparison(dir_);
  EXPECT_EQ(comparison.command, "compare --seeds 2");
  EXPECT_EQ(comparison.target_accuracy, 0.9);
  EXPECT_TRUE(comparison.has_virtual_clock);
  ASSERT_EQ(comparison.variants.size(), 1U);
  ASSERT_EQ(comparison.variants[0].runs.size(), 3U);
  EXPECT_TRUE(comparison.variants[0].runs[0].has_failed());
  EXPECT_FALSE(comparison.variants[0].runs[1].result.has_value());  // The run was interrupted.
  EXPECT_FALSE(comparison.variants[0].runs[2].result.has_value());  // The run has not begun.
}

// A run with two evaluations; an accuracy of "null" is not a number.
std::string run_lines(const std::string& first, const std::string& second) {
  const auto eval = [](int step, const std::string& accuracy) {
    return fmt::format(
        R"({{"event":"eval","step":{},"trained_samples":{},"trained_seconds":{},"test_loss":1,)"
        R"("test_accuracy":{}}})"
        "\n",
        step, 32 * step, step, accuracy);
  };
  return "{\"event\":\"run\",\"label\":\"a\",\"seed\":1,\"workers\":1}\n" + eval(1, first) +
         eval(2, second) +
         R"({"event":"summary","steps":2,"samples":64,"seconds":2,"samples_per_second":32,)"
         R"("train_loss":1,"test_loss":1,"test_accuracy":0.5,"staleness":[],"staleness_mean":0,"staleness_max":0,)"
         R"("input_wait_fraction":0,"communication_exposed_fraction":0,"weights_hash":"a"})"
         "\n";
}

constexpr const char* kWithoutTarget =
    R"({"clock":"virtual","target_accuracy":null,"variants":[
        {"label":"async","workers":4,"keeps_step":false,"distributed":true,"runs":["async.jsonl"]},
        {"label":"one","workers":1,"keeps_step":true,"distributed":false,
         "runs":["one1.jsonl","one2.jsonl","one3.jsonl"]}]})";

TEST_F(ComparisonFolder, HasATargetBelowTheBestOfTheRowWithOneWorker) {
  write("comparison.json", kWithoutTarget);
  write("runs/async.jsonl", run_lines("0.7", "0.9"));
  EXPECT_EQ(read_comparison(dir_).derived_target->baseline, "async");  // the other has no run yet
  write("runs/one1.jsonl", run_lines("0.6", "0.4"));
  write("runs/one2.jsonl", run_lines("0.1", "0.55"));
  write("runs/one3.jsonl", run_lines("0.2", "0.2"));
  const Comparison comparison = read_comparison(dir_);
  ASSERT_TRUE(comparison.derived_target.has_value());
  EXPECT_EQ(comparison.derived_target->baseline, "one");
  EXPECT_DOUBLE_EQ(comparison.derived_target->best_accuracy, 0.55);
  EXPECT_DOUBLE_EQ(*comparison.target_accuracy, 0.539);
  keep_outcome(dir_, outcome_of("", comparison));
  std::ifstream kept(dir_ / "comparison.json");
  const auto derived = nlohmann::json::parse(kept).at("derived_target");
  EXPECT_EQ(derived.at("baseline"), "one");
  EXPECT_DOUBLE_EQ(derived.at("accuracy").get<double>(), 0.539);
  EXPECT_TRUE(contains(setting_sentence(outcome_of("", comparison)),
                       "; target 53.9 %, 98 % of the best of one"));
  EXPECT_TRUE(contains(runs_csv(comparison), ",0.539,one,"));
}

TEST_F(ComparisonFolder, KeepsTheLatestAnswerAndItsNumbers) {
  write("comparison.json", R"({"clock":"real","recommended":["a"],
        "variants":[{"label":"a","workers":8,"keeps_step":true,"distributed":true,"runs":[]}]})");
  Comparison comparison = scaled(
      {made_up_variant("a", 8, kSlow, kGood), asynchronous(made_up_variant("b", 8, kFast, kPoor))});
  keep_outcome(dir_, outcome_of("", comparison));
  comparison.learning_rate_rule = "none";
  keep_outcome(dir_, outcome_of("", comparison));
  std::ifstream in(dir_ / "comparison.json");
  const auto kept = nlohmann::json::parse(in);
  EXPECT_EQ(kept.at("answer").at("form"), "winner");
  EXPECT_EQ(kept.at("answer").at("best"), "b");
  EXPECT_EQ(kept.at("answer").at("winners").at(0), "b");
  EXPECT_EQ(kept.at("answer").at("next"), "a");
  EXPECT_NEAR(kept.at("answer").at("next_ratio").get<double>(), 3.9, 0.05);
  EXPECT_EQ(kept.at("rows").at(0).at("runs_to_target"), 5);
  EXPECT_EQ(kept.at("rows").at(0).at("samples_to_target"), 200.0);
  EXPECT_EQ(kept.at("claims").at("pairs").size(), 2U);
  EXPECT_EQ(kept.at("claims").at("family_level"), kFamilyLevel);
  const auto rates = std::ranges::find_if(
      kept.at("facts"), [](const auto& fact) { return fact.at("subject") == "not tuned"; });
  ASSERT_NE(rates, kept.at("facts").end());
  EXPECT_EQ(rates->at("text"), "one learning rate for all; others may change the order");
  EXPECT_FALSE(kept.contains("recommended"));
  EXPECT_NO_THROW(read_comparison(dir_));
}

TEST_F(ComparisonFolder, OfNoVariantsIsRefused) {
  write("comparison.json", R"({"clock":"real","variants":[]})");
  EXPECT_THROW(read_comparison(dir_), FileError);
}

TEST_F(ComparisonFolder, HasNoTargetBeforeAnyRunHasAnAccuracy) {
  write("comparison.json", kWithoutTarget);
  EXPECT_FALSE(read_comparison(dir_).target_accuracy.has_value());
  EXPECT_EQ(target_text(read_comparison(dir_)), "the target");
  write("runs/one1.jsonl", run_lines("null", "null"));  // the run diverged
  EXPECT_FALSE(read_comparison(dir_).target_accuracy.has_value());
  write("runs/one2.jsonl", run_lines("null", "0.5"));
  EXPECT_EQ(target_text(read_comparison(dir_)), "49 %");
  write("runs/one3.jsonl", run_lines("0.5", "null"));
  EXPECT_DOUBLE_EQ(read_comparison(dir_).derived_target->best_accuracy, 0.5);
}

TEST_F(ComparisonFolder, HasOneTargetOnAllClustersOfAMap) {
  constexpr const char* kAsynchronous =
      R"({"clock":"virtual","target_accuracy":null,"variants":[
          {"label":"async","workers":4,"keeps_step":false,"distributed":true,
           "runs":["async.jsonl"]}]})";
  const std::vector<std::string> clusters = {"a", "b"};
  for (const std::string& cluster : clusters) {
    std::filesystem::create_directories(dir_ / cluster / "runs");
    write(cluster + "/comparison.json", kAsynchronous);
  }
  write("a/runs/async.jsonl", run_lines("0.5", "0.4"));
  write("b/runs/async.jsonl", run_lines("0.8", "0.9"));
  const std::vector<Comparison> comparisons = read_map(dir_, clusters);
  ASSERT_EQ(comparisons.size(), 2U);
  EXPECT_DOUBLE_EQ(*comparisons[0].target_accuracy, 0.49);
  EXPECT_DOUBLE_EQ(*comparisons[1].target_accuracy, 0.49);
}

TEST_F(ComparisonFolder, HasTheMachineAndTheAccuracyOfGuessing) {
  write("comparison.json",
        R"({"clock":"real","machines":[{"host":"node7","processor":"Xeon","cpus":2,"cores":1,
            "gpus":["H200"],"version":"0.1.0","date":"2026-11-23 14:05"}],"threads_per_worker":3,
            "chance":{"share":0.25,"classes":4,"test_samples":256,
                      "validation_samples":64},
            "variants":[{"label":"a","workers":4,"keeps_step":false,"distributed":true,"runs":[]},
                        {"label":"b","workers":4,"keeps_step":true,"distributed":false,
                         "runs":[]}]})");
  const Comparison comparison = read_comparison(dir_);
  ASSERT_EQ(comparison.machines.size(), 1U);
  EXPECT_EQ(comparison.machines[0].host, "node7");
  EXPECT_EQ(comparison.machines[0].gpus, std::vector<std::string>{"H200"});
  EXPECT_EQ(comparison.threads_per_worker, 3);
  ASSERT_TRUE(comparison.chance.has_value());
  EXPECT_EQ(comparison.chance->test_samples, 256);
  EXPECT_EQ(comparison.watched_split(), "validation");
  const auto rows = summarise(comparison);
  EXPECT_EQ(rows[0].kind, Kind::kAsynchronous);
  EXPECT_EQ(rows[0].resources.processes, 4);
  EXPECT_EQ(rows[0].resources.cpus, 12) << "three threads per worker";
  EXPECT_EQ(rows[1].kind, Kind::kSynchronous);
  EXPECT_EQ(rows[1].resources.processes, 1);
}

TEST_F(ComparisonFolder, WithoutAValidDescriptionIsAnErrorThatNamesTheFile) {
  EXPECT_THROW(read_comparison(dir_), FileError);
  for (const char* text :
       {"{", "[]", R"({"clock":"real"})", R"({"clock":"broken","variants":[]})",
        R"({"clock":"real","variants":[{"label":"a","workers":1,"distributed":true,"runs":[]}]})",
        R"({"clock":"real","variants":[{"label":"a","workers":1,"keeps_step":true,"runs":[]}]})"}) {
    write("comparison.json", text);
    EXPECT_TRUE(contains(message_of<FileError>([&] { read_comparison(dir_); }), "comparison.json"))
        << text;
  }
}

}  // namespace
}  // namespace syncopate::bench
