// Tests `syncopate-bench compare` with rules that drop, collect or order stale gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/bench/compare/compare_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

class CompareStaleRules : public Compare {};

// One worker pushes its gradients in a fixed order, so its weights do not depend on times. An
// update of 3 collected gradients leaves one of the 64 batches out.
TEST_F(CompareStaleRules, HaveTheSameWeightsWithRealProcessesAndUnderTheVirtualClock) {
  const Words variants =
      kSmall + as_words("--workers 1 --batch-size-per-replica 8 --strategies",
                        "parameter-server:async+ringmaster:1,parameter-server:async+rennala:3,"
                        "central-storage:async+ordered-momentum",
                        "--clock");
  const Words flags = as_words("-- --optimizer momentum --learning-rate 0.02");
  successful(run(variants + Words{"real"} + flags));
  const fs::path virtual_dir = scratch_ / "virtual";
  successful(run_compare(virtual_dir, variants + Words{"virtual"} + flags));
  for (const char* name :
       {"parameter-server_async_ringmaster_1-seed1", "parameter-server_async_rennala_3-seed1",
        "central-storage_async_ordered-momentum-seed1"}) {
    EXPECT_EQ(weights_in(dir_, name), weights_in(virtual_dir, name)) << name;
  }
}

TEST_F(CompareStaleRules, ReportWhatTheyDrop) {
  successful(run(kSmall + as_words("--workers 4 --clock virtual --service-time exponential:1",
                                   "--batch-size-per-replica 8 --strategies",
                                   "parameter-server:async+ringmaster:1,"
                                   "parameter-server:async+rennala:2,"
                                   "parameter-server:async+ordered-momentum{optimizer=momentum}")));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  const std::string facts = kept.at("facts").dump();
  EXPECT_TRUE(contains(facts, "ringmaster:1 drops gradients with a staleness of 1 or more: "));
  EXPECT_TRUE(
      contains(facts, "rennala:2 drops gradients of values that were updated since then: "));
  EXPECT_FALSE(contains(facts, "ordered-momentum drops"));
  EXPECT_GT(kept.at("rows").at(0).at("dropped_gradients").get<double>(), 0.3);
  EXPECT_TRUE(kept.at("rows").at(2).at("dropped_gradients").is_null());
}

// The preset has the default rate for all variants; the search begins with this rate.
TEST_F(CompareStaleRules, AreTunedInTheirPreset) {
  const ProgramResult result = successful(run_program(
      as_words(SYNCOPATE_BENCH,
               "compare --preset async-momentum --tune --clock virtual --epochs 1 --seeds 1 "
               "--evaluations 2 --no-progress --data synthetic:1x8x8:4:1024 --report",
               dir_)));
  const auto kept = nlohmann::json::parse(read_text(dir_ / "comparison.json"));
  EXPECT_EQ(kept.at("variants").size(), 6U);
  for (const auto& variant : kept.at("variants")) {
    EXPECT_EQ(variant.at("learning_rate_rule"), "tuned") << variant.at("label");
    // The outer step of delayed Nesterov has the momentum.
    const bool is_outer = variant.at("label") == "delayed Nesterov";
    EXPECT_EQ(variant.at("momentum"), is_outer ? 0.0 : 0.9) << variant.at("label");
    const double first = is_outer ? 0.1 : 0.01;
    const double steps_from_default = std::log2(variant.at("learning_rate").get<double>() / first);
    EXPECT_EQ(steps_from_default, std::round(steps_from_default)) << variant.at("label");
  }
  EXPECT_EQ(kept.at("variants").at(3).at("learning_rate_factor"), 8.0) << "of 8 gradients";
  EXPECT_TRUE(contains(kept.at("facts").dump(), "12 runs of each variant"));
  EXPECT_TRUE(contains(kept.at("facts").dump(), "Shi et al. 2024"));
}

TEST_F(CompareStaleRules, AreRefusedWhereTheyDoNotFit) {
  const ProgramResult sgd =
      run(kSmall + as_words("--clock virtual --strategies parameter-server:async+ordered-momentum",
                            "-- --optimizer sgd"));
  EXPECT_EQ(sgd.exit_code, 2);
  EXPECT_TRUE(contains(sgd.err,
                       "parameter-server:async+ordered-momentum: --staleness-rule "
                       "ordered-momentum requires --optimizer momentum"))
      << sgd.err;
  const ProgramResult too_few =
      run(kSmall + as_words("--strategies parameter-server:async+rennala:17"));
  EXPECT_EQ(too_few.exit_code, 2);
  EXPECT_TRUE(contains(too_few.err, "512 samples are fewer than the 544 of one of its updates"))
      << too_few.err;
}

}  // namespace
}  // namespace syncopate::test
