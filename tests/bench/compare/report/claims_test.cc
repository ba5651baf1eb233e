#include "bench/compare/report/claims.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/compare/report/verdict.h"
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

std::string sentences(const Comparison& comparison) {
  std::string text;
  for (const std::string& sentence : verdict(comparison).sentences) text += sentence + "\n";
  return text;
}

// Two CPUs train at most twice as fast as one of them; that a larger factor would have been seen
// says nothing. Two threads of one replica may use their CPUs in part only.
TEST(DetectableFactors, AreMarkedWhereTheyExceedWhatTheCpusAllow) {
  const std::vector<double> various = {100, 900, 300, 1500, 500};
  ComparedVariant two_threads = made_up_variant("two-threads", 1, various, kGood);
  two_threads.threads_per_worker = 2;
  Comparison comparison =
      scaled({made_up_variant("one-device", 1, various, kGood), two_threads,
              made_up_variant("a", 8, various, kGood), made_up_variant("b", 8, kSlow, kGood)});
  const std::string words = " (more than the 2.0 that parallel work alone allows here)";
  EXPECT_FALSE(contains_words(sentences(comparison), words)) << "the CPUs are unknown";
  comparison.machines = {{.host = "node7", .cpus = 2}};
  comparison.threads_per_worker = 1;
  EXPECT_TRUE(contains_words(sentences(comparison), " over one-device" + words + " and "));
  EXPECT_TRUE(contains_words(sentences(comparison), " over two-threads would have"))
      << sentences(comparison);
}

TEST(DetectableDifferences, StandBesideThePointsThatRemain) {
  const auto text = [](const std::vector<double>& of_b) {
    Comparison comparison =
        scaled({made_up_variant("a", 8, {100, 120, 110, 90, 105}, kGood),
                asynchronous(made_up_variant("b", 8, {105, 115, 108, 95, 101}, of_b))});
    return sentences(comparison);
  };
  // The more accurate row ended with 98.50 %.
  EXPECT_TRUE(contains_words(text({0.985, 0.999, 0.95, 0.995, 0.996}),
                             " points, of 1.50 remaining to 100 %, would have been seen with"));
}

}  // namespace
}  // namespace syncopate::bench
