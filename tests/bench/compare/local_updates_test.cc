// Tests `syncopate-bench compare` with variants that train in rounds (local-sgd).
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/bench/compare/compare_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

class CompareLocalUpdates : public Compare {};

// The run has 32 steps in rounds of 5 of two processes; the virtual clock needs none of them.
TEST_F(CompareLocalUpdates, HaveTheSameWeightsWithRealProcessesAndUnderTheVirtualClock) {
  const Words variants =
      kSmall + as_words("--batch-size-per-replica 8 --strategies local-sgd:diloco:5 --clock");
  successful(run(variants + Words{"real"}));
  const fs::path virtual_dir = scratch_ / "virtual";
  successful(run_compare(virtual_dir, variants + Words{"virtual"}));
  for (const char* name : {"local-sgd_diloco_5-seed1", "local-sgd_diloco_5__one_worker-seed1"}) {
    EXPECT_EQ(weights_in(dir_, name), weights_in(virtual_dir, name)) << name;
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
  const auto kept = nlohmann::json::parse(read_text(virtual_dir / "comparison.json"));
  EXPECT_EQ(kept.at("variants").size(), 1U) << "no control without an outer optimizer";
  EXPECT_EQ(kept.at("variants").at(0).at("learning_rate_factor"), 2.0);
  EXPECT_TRUE(contains(kept.at("facts").dump(), "sums of gradients until epoch 0.5"));
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

TEST_F(CompareLocalUpdates, RefuseFlagsThatBelongToOneVariant) {
  const auto refusal = [&](const Words& words) { return run(kSmall + words).err; };
  EXPECT_TRUE(contains(refusal(as_words("--strategies local-sgd:diloco:4{sync-groups=2}")),
                       "--sync-groups: compare does not take it; use syncopate train"));
  EXPECT_TRUE(contains(refusal(as_words("--strategies mirrored -- --sync-every 4")),
                       "give it in the name of a variant, such as local-sgd:diloco:8"));
  EXPECT_TRUE(
      contains(refusal(as_words("--clock virtual --strategies mirrored{outer-momentum=0.5}")),
               "--outer-momentum 0.5: not applicable to mirrored"));
}

}  // namespace
}  // namespace syncopate::test
