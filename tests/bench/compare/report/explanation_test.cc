#include <gtest/gtest.h>

#include <string>

#include "bench/compare/report/verdict.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

TEST(Explanation, NamesTheVariantsWithEqualWeights) {
  const auto hashed = [](const std::string& label) {
    ComparedVariant variant = made_up_variant(label, 4, kFast, kGood);
    for (ComparedRun& run : variant.runs) {
      run.result->summary.weights_hash = "cafe" + std::to_string(run.result->seed);
    }
    return variant;
  };
  Comparison comparison = scaled({hashed("a"), hashed("b"), made_up_variant("c", 4, kSlow, kGood)});
  comparison.model = "mlp";
  const std::string text = explanation(comparison, summarise(comparison), "+-");
  EXPECT_TRUE(contains_words(text, "a and b ended with the same weights, bit for bit."));
  EXPECT_TRUE(contains_words(text, "mlp, 3 epochs of digits per run; n = 5 seeds per row"));
  EXPECT_TRUE(contains_words(text, "the last, shorter batch of an epoch is not trained"));
  EXPECT_FALSE(contains_words(text, "ssp"));
  EXPECT_FALSE(contains_words(text, "Staleness"));
}

TEST(Explanation, SaysWhatTheColumnsCount) {
  ComparedVariant stale = asynchronous(made_up_variant("server:ssp:2", 2, kFast, kGood));
  for (ComparedRun& run : stale.runs) run.result->summary.staleness.emplace_back();
  Comparison comparison = scaled({made_up_variant("one-device", 1, kFast, kGood), stale,
                                  made_up_variant("server:sync+backup:1", 2, kSlow, kGood)});
  comparison.machines = {{.cpus = 2}};
  comparison.threads_per_worker = 1;
  const std::string text = explanation(comparison, summarise(comparison), "+-");
  EXPECT_TRUE(contains_words(text, "The first row used 1 of 2 CPUs."));
  EXPECT_TRUE(contains_words(text, "Staleness: updates of the servers' values between"));
  EXPECT_TRUE(contains_words(text, "staleness in updates may be larger."));
  EXPECT_TRUE(contains_words(text, "samples/s count only the gradients that were used;"));
  EXPECT_TRUE(contains_words(text, "The runs of seed 1 were made first"));
}

}  // namespace
}  // namespace syncopate::bench
