// Tests `syncopate-bench compare` with variants that train in rounds (local-sgd).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bench/compare/compare_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

class CompareLocalUpdates : public Compare {};

// Returns the first line of a run of the search.
nlohmann::json head_in(const fs::path& file) {
  const std::string text = read_text(file);
  return nlohmann::json::parse(text.substr(0, text.find('\n')));
}

// Returns the step, the round and the steps of the round of each `step` line; 0 for no round.
std::vector<std::array<int, 3>> rounds_in(const fs::path& report, const std::string& run) {
  std::istringstream lines(read_text(report / "runs" / (run + ".jsonl")));
  std::vector<std::array<int, 3>> rounds;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.at("event") != "step") continue;
    rounds.push_back({object.at("step"), object.value("round", 0), object.value("inner_steps", 0)});
  }
  EXPECT_FALSE(rounds.empty()) << run;
  return rounds;
}

// The run has 32 steps in rounds of 5 of two processes; the virtual clock needs none of them.
TEST_F(CompareLocalUpdates, HaveTheSameWeightsWithRealProcessesAndUnderTheVirtualClock) {
  const Words variants =
      kSmall + as_words("--batch-size-per-replica 8 --strategies local-sgd:diloco:5 --clock");
  successful(run(variants + Words{"real"}));
  const fs::path virtual_dir = scratch_ / "virtual";
  successful(run_compare(virtual_dir, variants + Words{"virtual"}));
  for (const char* name : {"local-sgd_diloco_5-seed1", "local-sgd_diloco_5__one_worker-seed1"}) {
    EXPECT_EQ(weights_in(dir_, name), weights_in(virtual_dir, name)) << name;
    EXPECT_EQ(rounds_in(dir_, name), rounds_in(virtual_dir, name)) << name;
    EXPECT_EQ(rounds_in(virtual_dir, name).back(), (std::array{32, 7, 2})) << name;
  }
}

// The rate of the sums of 2 workers is kept in the rounds.
TEST_F(CompareLocalUpdates, MayBeginWithSumsOfGradients) {
  const Words variants = kSmall + as_words("--batch-size-per-replica 8 --strategies",
                                           "local-sgd:post-local:5{local-from=0.5}", "--clock");
  const Words flags = as_words("-- --optimizer sgd");
  successful(run(variants + Words{"real"} + flags));
  const fs::path virtual_dir = scratch_ / "virtual";
  successful(run_compare(virtual_dir, variants + Words{"virtual"} + flags));
  const std::string name = "local-sgd_post-local_5_local-from_0.5_-seed1";
  EXPECT_EQ(weights_in(dir_, name), weights_in(virtual_dir, name));
  EXPECT_EQ(rounds_in(dir_, name), rounds_in(virtual_dir, name));
  EXPECT_EQ(rounds_in(virtual_dir, name).front(), (std::array{16, 0, 0}));
  const auto kept = nlohmann::json::parse(read_text(virtual_dir / "comparison.json"));
  EXPECT_EQ(kept.at("variants").size(), 1U) << "no control without an outer optimizer";
  EXPECT_EQ(kept.at("variants").at(0).at("learning_rate_factor"), 2.0);
  EXPECT_TRUE(contains(kept.at("facts").dump(), "sums of gradients until epoch 0.5"));
}

// One worker pushes its displacements in a fixed order. 64 batches are 12 rounds of 5 and one of 4.
TEST_F(CompareLocalUpdates, MayPushDisplacements) {
  const Words variants = kSmall + as_words("--workers 1 --batch-size-per-replica 8 --strategies",
                                           "parameter-server:async+displacement:average:5,"
                                           "central-storage:async+displacement:diloco:5,"
                                           "parameter-server:async+displacement:"
                                           "delayed-nesterov:3:5",
                                           "--clock");
  successful(run(variants + Words{"real"}));
  const fs::path virtual_dir = scratch_ / "virtual";
  successful(run_compare(virtual_dir, variants + Words{"virtual"}));
  for (const char* name : {"parameter-server_async_displacement_average_5-seed1",
                           "central-storage_async_displacement_diloco_5-seed1",
                           "parameter-server_async_displacement_delayed-nesterov_3_5-seed1"}) {
    EXPECT_EQ(weights_in(dir_, name), weights_in(virtual_dir, name)) << name;
  }
  const auto kept = nlohmann::json::parse(read_text(virtual_dir / "comparison.json"));
  EXPECT_TRUE(contains(kept.at("facts").dump(), "with each worker's displacement"));
}

TEST_F(CompareLocalUpdates, HaveAControlOfTheirOuterOptimizerAndNameTheirRounds) {
  successful(
      run(kSmall + as_words("--clock virtual --link-rate 1gbit --strategies "
                            "multi-worker-mirrored,local-sgd:average:2,local-sgd:slowmo:2")));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  Words labels;
  for (const auto& variant : kept.at("variants")) labels.push_back(variant.at("label"));
  EXPECT_EQ(labels, (Words{"multi-worker-mirrored", "local-sgd:average:2", "local-sgd:slowmo:2",
                           "local-sgd:slowmo:2, one worker"}));
  const auto& rounds = kept.at("variants").at(2).at("rounds");
  EXPECT_EQ(rounds.at("steps"), 2);
  EXPECT_EQ(rounds.at("has_outer_optimizer"), true);
  EXPECT_EQ(kept.at("variants").at(1).at("rounds").at("has_outer_optimizer"), false);
  EXPECT_TRUE(contains(kept.at("facts").dump(),
                       "local-sgd:slowmo:2: 2 steps in a round, outer step slowmo: learning rate "
                       "1, momentum 0.5"));
  EXPECT_TRUE(contains(kept.at("variants").at(3).at("command").dump(), "--sync-every"));
}

TEST_F(CompareLocalUpdates, AreTunedAsOtherVariantsAre) {
  successful(run(kSmall + as_words("--clock virtual --tune --strategies "
                                   "local-sgd:average:4,local-sgd:diloco:4")));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  EXPECT_EQ(kept.at("variants").size(), 3U);
  for (const auto& variant : kept.at("variants")) {
    EXPECT_EQ(variant.at("learning_rate_rule"), "tuned") << variant;
  }
}

// Every variant has the 22 runs of the variant with the most points, 5 rates with 2 lengths.
TEST_F(CompareLocalUpdates, HaveTheirRoundsTuned) {
  successful(run(kSmall + as_words("--clock virtual --tune sync-every:1:4 --strategies "
                                   "multi-worker-mirrored,local-sgd:average:tuned")));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  const auto& tuned = kept.at("variants").at(1);
  EXPECT_EQ(tuned.at("label"), "local-sgd:average:tuned");
  const int steps = tuned.at("rounds").at("steps");
  EXPECT_TRUE(steps == 1 || steps == 4) << steps;
  const std::string command = tuned.at("command").dump();
  EXPECT_TRUE(contains(command, "\"--sync-every\",\"" + std::to_string(steps) + "\""));
  EXPECT_TRUE(contains(kept.at("facts").dump(), "22 runs of each variant",
                       "searched the learning rate, number of steps in a round (1, 4)",
                       "The outer step was given, not tuned"));
}

// The plain average with another rate is an outer optimizer, so it has a control.
TEST_F(CompareLocalUpdates, HaveTheirOuterRateTuned) {
  successful(run(kSmall + as_words("--clock virtual --tune outer-learning-rate --strategies "
                                   "local-sgd:average:4")));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  ASSERT_EQ(kept.at("variants").size(), 2U);
  EXPECT_EQ(kept.at("variants").at(1).at("label"), "local-sgd:average:4, one worker");
  for (const auto& variant : kept.at("variants")) {
    const double exponent = std::log2(variant.at("rounds").at("outer_learning_rate").get<double>());
    EXPECT_EQ(exponent, std::round(exponent)) << variant;
  }
  EXPECT_TRUE(contains(kept.at("facts").dump(), "32 runs of each variant",
                       "learning rate of the outer step"));
}

// The default rate of the outer step is one over the number of workers. The control has one worker.
TEST_F(CompareLocalUpdates, HaveTheOuterRateOfDisplacementsTuned) {
  successful(run(kSmall + as_words("--clock virtual --workers 4 --batch-size-per-replica 8 "
                                   "--tune outer-learning-rate "
                                   "--strategies "
                                   "mirrored,central-storage:async+displacement:average:4")));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  ASSERT_EQ(kept.at("variants").size(), 3U);
  EXPECT_FALSE(kept.at("variants").at(0).contains("rounds"));
  std::set<double> tried;
  for (const fs::directory_entry& file : fs::directory_iterator(dir_ / "tuning" / "1" / "runs")) {
    const auto head = head_in(file.path());
    if (head.at("variant").at("tuning_of") != kept.at("variants").at(1).at("label")) continue;
    tried.insert(head.at("variant").at("rounds").at("outer_learning_rate").get<double>());
  }
  EXPECT_EQ(tried, (std::set{0.125, 0.25, 0.5}));
  EXPECT_TRUE(contains(kept.at("facts").dump(), "32 runs of each variant",
                       "learning rate of the outer step"));
}

// The longest of the rounds that were tried is the soonest on a slow link.
TEST_F(CompareLocalUpdates, AreMarkedIfTheLongestRoundsOfTheSearchAreTheBest) {
  successful(run(kSmall + as_words("--clock virtual --tune sync-every:1:4 --link-rate 1mbit "
                                   "--strategies local-sgd:average:tuned")));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  const auto& tuned = kept.at("variants").at(0);
  EXPECT_EQ(tuned.at("rounds").at("steps"), 4);
  EXPECT_EQ(tuned.at("at_border"), true);
  EXPECT_TRUE(contains(kept.at("facts").dump(), "values beyond those tried may be better for"));
}

TEST_F(CompareLocalUpdates, RefuseATuningThatHasNothingToSearch) {
  const auto refusal = [&](const Words& words) {
    return in_one_line(run(kSmall + as_words("--clock virtual") + words).err);
  };
  EXPECT_TRUE(contains(refusal(as_words("--strategies local-sgd:average:tuned")),
                       "local-sgd:average:tuned: give --tune sync-every"));
  EXPECT_TRUE(contains(refusal(as_words("--tune sync-every --strategies local-sgd:average:8")),
                       "--tune sync-every: no variant has rounds to search"));
  EXPECT_TRUE(contains(refusal(as_words("--tune outer-learning-rate --strategies mirrored")),
                       "--tune outer-learning-rate: no variant has an outer step"));
  for (const char* wrong : {"sync-every:4", "sync-every:4:1", "sync-every:x:8", "sync-everys"}) {
    EXPECT_TRUE(contains(refusal(Words{"--tune", wrong}), std::string("--tune ") + wrong)) << wrong;
  }
}

TEST_F(CompareLocalUpdates, RefuseFlagsThatBelongToOneVariant) {
  const auto refusal = [&](const Words& words) { return run(kSmall + words).err; };
  EXPECT_TRUE(contains(refusal(as_words("--strategies local-sgd:diloco:4{sync-groups=2}")),
                       "--sync-groups: compare does not take it; the replicas of one task average",
                       "use syncopate train with --replicas"));
  EXPECT_TRUE(contains(refusal(as_words("--strategies mirrored -- --sync-every 4")),
                       "give it in the name of a variant, such as local-sgd:diloco:8"));
  EXPECT_TRUE(
      contains(refusal(as_words("--clock virtual --strategies mirrored{outer-momentum=0.5}")),
               "--outer-momentum 0.5: not applicable to mirrored"));
}

}  // namespace
}  // namespace syncopate::test
