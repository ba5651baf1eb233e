// Tests the ratios of two comparisons of the same variants.
#include "bench/compare/report/against.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "tests/bench/compare/report/made_up.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

// Runs reach 95 % after these seconds.
const std::vector<double> kSeconds = {9.0, 10.0, 11.0};

Comparison made_up(double slower, const std::vector<std::string>& labels) {
  std::vector<ComparedVariant> variants;
  for (const std::string& label : labels) {
    std::vector<double> seconds = kSeconds;
    for (double& one : seconds) one *= slower;
    variants.push_back(made_up_variant(label, 2, seconds, {0.97, 0.97, 0.97}));
  }
  Comparison comparison = made_up_comparison(std::move(variants));
  comparison.model = "mlp";
  comparison.data = "digits";
  return comparison;
}

std::string printed(const Comparison& ours, const Comparison& theirs) {
  std::ostringstream out;
  print_against(out, ours, theirs);
  return out.str();
}

// The logarithms of 9, 10 and 11 have a standard deviation of 0.1005; the standard error of the
// difference is 0.0820 and t(4, 97.5 %) is 2.776, so the interval is exp(+-0.228) times the ratio.
TEST(Against, PrintsRatiosWithIntervalsAndTheLargestError) {
  Comparison ours = made_up(1.5, {"a", "only here"});
  const Comparison theirs = made_up(1.0, {"b", "a"});
  const std::string text = printed(ours, theirs);
  EXPECT_TRUE(contains(text, "0.67 (0.53 to 0.84)", "1.50 (1.19 to 1.88)",
                       "Largest error: 50 %, time to 95 % of a."))
      << text;
  EXPECT_FALSE(contains(text, "only here"));
  EXPECT_FALSE(contains(text, "b "));
}

TEST(Against, UsesTheTargetOfTheFirstComparison) {
  const Comparison ours = made_up(1.0, {"a"});
  Comparison theirs = made_up(1.0, {"a"});
  theirs.derived_target = {.baseline = "a", .best_accuracy = 0.99};
  theirs.target_accuracy = 0.99;  // which no run reaches
  EXPECT_TRUE(contains(printed(ours, theirs), "Largest error: 0 %, time to 95 % of a."));
}

TEST(Against, CountsTheRunsThatReachedTheTargetIfSomeMissedIt) {
  Comparison theirs = made_up(1.0, {"a"});
  theirs.variants[0] = reaching(theirs.variants[0], 2);
  const std::string text = printed(made_up(1.0, {"a"}), theirs);
  EXPECT_TRUE(contains(text, "3 of 3 / 2 of 3", "samples/s of a.")) << text;
}

TEST(Against, RefusesOtherNetworksDataTargetsAndVariants) {
  const Comparison ours = made_up(1.0, {"a"});
  const auto refusal = [&](const Comparison& theirs) -> std::string {
    try {
      printed(ours, theirs);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  Comparison other = ours;
  other.model = "mnist-cnn";
  EXPECT_TRUE(
      contains(refusal(other), "the networks of the two comparisons differ: mlp and mnist"));
  other = ours;
  other.data = "";
  EXPECT_TRUE(contains(refusal(other), "data sets", "digits and unknown"));
  Comparison hashed = ours;
  hashed.data_hash = "1234";
  other = hashed;
  other.data = "mnist:/another/folder";
  hashed.budget = "2 epochs of digits";
  other.budget = "2 epochs of mnist:/another/folder";
  EXPECT_TRUE(contains(printed(hashed, other), "Largest error: 0 %"));
  other.data_hash = "5678";
  EXPECT_THROW(printed(hashed, other), UsageError);
  other = ours;
  other.target_accuracy = 0.9;
  EXPECT_TRUE(contains(refusal(other), "targets", "95 % and 90 %"));
  EXPECT_TRUE(contains(refusal(made_up(1.0, {"b"})), "no variant in common"));
  other = ours;
  other.budget = "10 updates";
  EXPECT_TRUE(contains(refusal(other), "budgets", "10 updates"));
  other = ours;
  other.variants[0].workers = 4;
  EXPECT_TRUE(contains(refusal(other), "the workers of a differ: 2 and 4"));
  other = ours;
  other.variants[0].servers = 1;
  EXPECT_TRUE(contains(refusal(other), "the servers of a differ: 0 and 1"));
  Comparison with_batch = ours;
  with_batch.variants[0].batch_size = 32;
  EXPECT_TRUE(contains(printed(with_batch, ours), "Largest error: 0 %")) << "one is unknown";
  other = with_batch;
  other.variants[0].batch_size = 64;
  EXPECT_EQ(
      message_if_thrown<UsageError>([&] { printed(with_batch, other); }),
      "--against: the samples per step of a differ: 32 and 64; give a comparison with the same");
}

}  // namespace
}  // namespace syncopate::bench
