#include "bench/compare/report/claims.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

PairDifference difference_in_time(const std::vector<ComparedVariant>& variants) {
  const auto difference =
      Claims(summarise(made_up_comparison(variants))).difference(1, 0, Measure::kTime);
  EXPECT_TRUE(difference);
  return difference.value_or(PairDifference{});
}

// Runs of both rows reach the target at the same sample since their weights are the same, so it
// does not matter at which of the samples since the previous evaluation they did.
TEST(Claims, DoNotCountTheDistanceOfEvaluationsBetweenRowsWithEqualWeights) {
  std::vector<ComparedVariant> variants = {
      made_up_variant("a", 4, {100, 101, 99, 100, 100.5}, kGood),
      made_up_variant("b", 4, {130, 131, 129, 130, 130.5}, kGood)};
  // Half of the time lies between the evaluations.
  EXPECT_FALSE(difference_in_time(variants).is_claimed());
  for (ComparedVariant& variant : variants) {
    for (std::size_t i = 0; i < variant.runs.size(); ++i) {
      variant.runs[i].result->summary.weights_hash = std::to_string(i);
    }
  }
  const PairDifference equal_weights = difference_in_time(variants);
  EXPECT_TRUE(equal_weights.is_claimed());
  EXPECT_NEAR(equal_weights.value, std::log(1.3), 0.01);
}

// A source of error of known size adds degrees of freedom, so a claim may need it.
TEST(Claims, AreNamedWhereWelchsTestAloneDoesNotMakeThem) {
  const Comparison comparison =
      scaled({made_up_variant("a", 4, {100, 100.1, 99.9, 100, 100}, kGood),
              made_up_variant("b", 4, {900, 300, 1500, 500, 800}, kGood)});
  const auto difference = Claims(summarise(comparison)).difference(1, 0, Measure::kTime);
  ASSERT_TRUE(difference);
  EXPECT_TRUE(difference->is_claimed());
  EXPECT_GT(difference->welch_adjusted_p, difference->adjusted_p);
}

}  // namespace
}  // namespace syncopate::bench
