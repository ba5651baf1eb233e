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

// With five against five seeds the least p of a log-rank test is 2 / 252. Where one row reached the
// target and others missed it, the pairs of rows that missed it take no part of the level.
TEST(Claims, ShowOneRowThatReachedTheTargetAgainstFourThatDidNot) {
  std::vector<ComparedVariant> variants = {made_up_variant("a", 4, kFast, kGood)};
  for (const char* label : {"b", "c", "d", "e"}) {
    variants.push_back(reaching(made_up_variant(label, 4, kFast, kGood), 0));
  }
  const Claims claims(summarise(scaled(std::move(variants))));
  ASSERT_EQ(claims.all_censored().size(), 4U);
  EXPECT_NEAR(claims.all_censored().front().test.p_value, 2.0 / 252.0, 1e-12);
  EXPECT_NEAR(claims.all_censored().front().level, kTimeLevel / 4.0, 1e-12);
  for (const std::size_t row : {1, 2, 3, 4}) EXPECT_TRUE(claims.is_sooner(0, row)) << row;
  EXPECT_FALSE(claims.is_sooner(1, 2));
}

// Six comparisons leave 0.6 % for each, which two samples of five cannot reach and of six can.
TEST(Claims, SayHowManySeedsAPairNeedsThatCannotReachItsLevel) {
  std::vector<ComparedVariant> variants;
  for (const char* label : {"a", "b", "c"}) {
    variants.push_back(made_up_variant(label, 4, kFast, kGood));
  }
  for (const char* label : {"d", "e", "f"}) {
    variants.push_back(reaching(made_up_variant(label, 4, kFast, kGood), 0));
  }
  const Claims claims(summarise(scaled(std::move(variants))));
  ASSERT_EQ(claims.all_censored().size(), 9U);
  for (const CensoredPair& pair : claims.all_censored()) {
    EXPECT_EQ(pair.seeds_needed, 6);
    EXPECT_FALSE(pair.is_claimed());
  }
}

// Where nearly all runs missed the target, no other number of seeds is known to help.
TEST(Claims, DoNotAskForTheSeedsThatAreThere) {
  const Claims claims(summarise(scaled({reaching(made_up_variant("a", 4, kFast, kGood), 1),
                                        reaching(made_up_variant("b", 4, kFast, kGood), 0)})));
  ASSERT_EQ(claims.all_censored().size(), 1U);
  EXPECT_FALSE(claims.all_censored().front().seeds_needed);
}

TEST(Claims, NeedFiveSeeds) {
  std::vector<ComparedVariant> variants = {made_up_variant("a", 4, kSlow, kGood),
                                           made_up_variant("b", 4, kFast, kPoor)};
  EXPECT_EQ(Claims(summarise(scaled(variants))).all().size(), 2U);
  variants[1].runs.pop_back();
  EXPECT_TRUE(Claims(summarise(scaled(variants))).all().empty());
}

TEST(Claims, AreNotMadeFromDisturbedRunsAndNotAboutTimesOfSeveralMachines) {
  Comparison comparison =
      scaled({made_up_variant("a", 4, kSlow, kGood), made_up_variant("b", 4, kFast, kPoor)});
  comparison.machines = {{.host = "a"}, {.host = "b"}};
  const Claims claims(summarise(comparison));
  EXPECT_FALSE(claims.is_sooner(1, 0));
  EXPECT_TRUE(claims.is_more_accurate(0, 1));
  comparison.variants[1].runs[0].result->others_cpu_share = 0.2;
  EXPECT_TRUE(Claims(summarise(comparison)).all().empty());
}

// Equal values of a small test set are no proof that others differ from them.
TEST(Claims, DoNotTakeEqualAccuraciesForProof) {
  const std::vector<double> ones(5, 1.0);
  const std::vector<double> lower(5, 0.99);
  const Claims claims(summarise(
      scaled({made_up_variant("a", 4, kFast, ones), made_up_variant("b", 4, kFast, lower)})));
  EXPECT_FALSE(claims.is_more_accurate(0, 1));
}

// Rows that are equal bit for bit are one row: they take no part of the level from others.
TEST(Claims, CountEqualRowsOnce) {
  std::vector<ComparedVariant> variants = {made_up_variant("a", 4, kSlow, kGood),
                                           made_up_variant("b", 4, kFast, kGood),
                                           made_up_variant("c", 4, kFast, kGood)};
  for (ComparedVariant& variant : variants) {
    for (std::size_t i = 0; i < variant.runs.size(); ++i) {
      variant.runs[i].result->summary.weights_hash =
          (variant.label == "a" ? "a" : "b") + std::to_string(i);
    }
  }
  const Rows rows = summarise(scaled(variants));
  EXPECT_EQ(rows[2].same_as, 1U);
  const Claims claims(rows);
  EXPECT_EQ(claims.all().size(), 2U);  // a and b, in time and in accuracy
  EXPECT_EQ(claims.all().front().means, 2);
  EXPECT_TRUE(claims.is_sooner(2, 0));
  EXPECT_FALSE(claims.is_sooner(2, 1));
}

TEST(DetectableDifferences, ShrinkWithMoreSeedsAndAreNeverAbsurd) {
  const PairDifference pair =
      difference_in_time(scaled({made_up_variant("a", 8, {100, 120, 110, 90, 105}, kGood),
                                 made_up_variant("b", 8, {105, 115, 108, 95, 101}, kGood)})
                             .variants);
  ASSERT_TRUE(pair.detectable_with(5));
  EXPECT_LT(*pair.detectable_with(20), 0.6 * *pair.detectable_with(5));
  const PairDifference wild =
      difference_in_time(scaled({made_up_variant("a", 8, {1, 1e5, 10, 1e4, 1e3}, kGood),
                                 made_up_variant("b", 8, {1e5, 1, 1e4, 10, 1e3}, kGood)})
                             .variants);
  EXPECT_FALSE(wild.detectable_with(5));
}

}  // namespace
}  // namespace syncopate::bench
