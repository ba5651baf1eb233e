#include "bench/compare/report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using Values = std::vector<double>;

TEST(Mean, OfThreeValues) { EXPECT_DOUBLE_EQ(mean(Values{1.0, 2.0, 6.0}), 3.0); }
TEST(Mean, OfNoValuesThrows) { EXPECT_THROW(mean({}), InternalError); }

TEST(StandardDeviation, DividesByOneLessThanTheCount) {
  // The squared deviations of 2, 4, 4, 4, 5, 5, 7, 9 sum to 32, and n - 1 is 7.
  EXPECT_DOUBLE_EQ(*standard_deviation(Values{2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7.0));
}

TEST(StandardDeviation, OfOneValueIsUnknown) {
  EXPECT_FALSE(standard_deviation(Values{1.0}).has_value());
}

TEST(PercentileOfCounts, CountsFromZero) {
  const std::vector<std::int64_t> counts = {50, 45, 4, 0, 1};
  EXPECT_EQ(percentile_of_counts(counts, 0.5), 0);
  EXPECT_EQ(percentile_of_counts(counts, 0.51), 1);
  EXPECT_EQ(percentile_of_counts(counts, 0.95), 1);
  EXPECT_EQ(percentile_of_counts(counts, 1.0), 4);
  EXPECT_EQ(percentile_of_counts({}, 0.5), 0);
}

TEST(IncompleteBeta, EqualsItsClosedForms) {
  EXPECT_NEAR(incomplete_beta(1.0, 1.0, 0.3), 0.3, 1e-14);                    // I(1, 1, x) = x
  EXPECT_NEAR(incomplete_beta(2.0, 1.0, 0.3), 0.09, 1e-14);                   // I(2, 1, x) = x^2
  EXPECT_NEAR(incomplete_beta(1.0, 3.0, 0.3), 1.0 - 0.7 * 0.7 * 0.7, 1e-14);  // 1 - (1-x)^3
  EXPECT_NEAR(incomplete_beta(0.5, 0.5, 0.3), 2.0 / M_PI * std::asin(std::sqrt(0.3)), 1e-13);
  EXPECT_EQ(incomplete_beta(2.0, 3.0, 0.0), 0.0);
  EXPECT_EQ(incomplete_beta(2.0, 3.0, 1.0), 1.0);
}

TEST(StudentT, EqualsPrintedTables) {
  // The expected quantiles have three decimals, as in printed tables.
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.706, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.303, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 4), 2.776, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 10), 2.228, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 120), 1.980, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.95, 5), 2.015, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.995, 3), 5.841, 5e-4);
}

TEST(StudentT, EqualsItsClosedFormsForOneAndTwoDegrees) {
  // The closed forms of Student's quantile are tan(pi (p - 1/2)) for 1 degree of freedom and (2p -
  // 1) sqrt(2 / (4 p (1 - p))) for 2.
  EXPECT_NEAR(student_t_quantile(0.9, 1), std::tan(M_PI * 0.4), 1e-10);
  EXPECT_NEAR(student_t_quantile(0.9, 2), 0.8 * std::sqrt(2.0 / (4 * 0.9 * 0.1)), 1e-10);
}

TEST(StudentT, IsSymmetricAndConvergesToTheNormalDistribution) {
  EXPECT_NEAR(student_t_quantile(0.5, 3), 0.0, 1e-12);
  EXPECT_DOUBLE_EQ(student_t_quantile(0.025, 4), -student_t_quantile(0.975, 4));
  EXPECT_NEAR(student_t_quantile(0.975, std::numeric_limits<double>::infinity()), 1.959964, 1e-6);
}

// power.t.test of R: 20 values a side with a deviation of 1 find a difference of 1 at the level 5 %
// with a probability of 0.8689528.
TEST(WelchTest, HasThePowerOfANoncentralT) {
  const WelchTest test{.standard_error = std::sqrt(2.0 / 20.0), .degrees = 38.0};
  EXPECT_NEAR(test.detectable(0.05, 0.8689528), 1.0, 1e-4);
}

// With few degrees of freedom the two quantiles of a central t would add up to too small a value:
// simulated runs find it with a probability of 0.64 instead of 0.8.
TEST(WelchTest, FindsLessWithFewSeedsThanTwoQuantilesAddUpTo) {
  const WelchTest test{.standard_error = 1.0, .degrees = 2.32};
  const double level = 0.05 / 15.0;
  EXPECT_GT(test.detectable(level, 0.8),
            1.15 * (test.reach(level) + student_t_quantile(0.8, 2.32)));
}

TEST(WelchTest, OfEqualVariancesEqualsStudents) {
  // Both samples have variance 1 and n = 3, so the difference has standard error sqrt(2/3), with 4
  // degrees of freedom and t = 2.776445.
  const auto test = welch_test(Values{11, 12, 13}, Values{1, 2, 3});
  ASSERT_TRUE(test.has_value());
  EXPECT_DOUBLE_EQ(test->difference, 10.0);
  EXPECT_DOUBLE_EQ(test->degrees, 4.0);
  EXPECT_NEAR(test->reach(0.05), 2.776445 * std::sqrt(2.0 / 3.0), 1e-5);
}

TEST(WelchTest, OfUnequalVariancesHasFewerDegreesOfFreedom) {
  // The samples have variances 1 and 100 and n = 3, so s = 101/3 and the degrees of freedom are
  // (101/3)^2 / ((1/3)^2/2 + (100/3)^2/2) = 2.04.
  const auto test = welch_test(Values{1, 2, 3}, Values{-10, 0, 10});
  EXPECT_NEAR(test->degrees, 2 * 101.0 * 101.0 / 10001.0, 1e-12);
  EXPECT_NEAR(test->standard_error, std::sqrt(101.0 / 3.0), 1e-12);
}

TEST(WelchTest, HasAPValueThatEqualsPrintedTables) {
  // The difference is t = 2.776445 standard errors of 4 degrees of freedom, hence p = 0.05.
  const WelchTest test{.difference = 2.776445, .standard_error = 1.0, .degrees = 4.0};
  EXPECT_NEAR(test.p_value(), 0.05, 1e-6);
  const WelchTest normal{.difference = -1.959964,
                         .standard_error = 1.0,
                         .degrees = std::numeric_limits<double>::infinity()};
  EXPECT_NEAR(normal.p_value(), 0.05, 1e-6);
}

TEST(WelchTest, OfValuesWithoutSpreadIsCertain) {
  EXPECT_EQ(welch_test(Values{5, 5}, Values{3, 3})->p_value(), 0.0);
  EXPECT_EQ(welch_test(Values{5, 5}, Values{3, 3})->reach(0.05), 0.0);
  EXPECT_EQ(welch_test(Values{5, 5}, Values{5, 5})->p_value(), 1.0);
}

TEST(WelchTest, AddsASystematicErrorThatMoreValuesDoNotReduce) {
  // The squared errors 4 and 12 add to 16, and the degrees of freedom 5 grow by (16 / 4)^2.
  const WelchTest test{.difference = 1.0, .standard_error = 2.0, .degrees = 5.0};
  EXPECT_DOUBLE_EQ(test.with_systematic_error(12.0).standard_error, 4.0);
  EXPECT_DOUBLE_EQ(test.with_systematic_error(12.0).degrees, 80.0);
  EXPECT_DOUBLE_EQ(test.with_systematic_error(0.0).degrees, 5.0);
}

TEST(WelchTest, OfASingleValueOrOfNaNIsUnknown) {
  EXPECT_FALSE(welch_test(Values{5}, Values{3, 4}).has_value());
  EXPECT_FALSE(welch_test(Values{5, NAN}, Values{3, 4}).has_value());
}

TEST(Holm, TestsTheSmallestPValueAtTheStrictestLevel) {
  // Holm's levels for four hypotheses are 0.05 / 4, / 3, / 2 and / 1. The second smallest p-value,
  // 0.02, exceeds 0.05 / 3, so that all after it are accepted at that level too.
  const auto steps = holm(Values{0.04, 0.01, 0.02, 0.9}, 0.05);
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_DOUBLE_EQ(steps[1].level, 0.0125);
  EXPECT_DOUBLE_EQ(steps[1].adjusted_p, 0.04);
  for (const std::size_t accepted : {0, 2, 3}) {
    EXPECT_DOUBLE_EQ(steps[accepted].level, 0.05 / 3) << accepted;
    EXPECT_GT(steps[accepted].adjusted_p, 0.05) << accepted;
  }
  EXPECT_DOUBLE_EQ(steps[2].adjusted_p, 0.06);
  EXPECT_DOUBLE_EQ(steps[0].adjusted_p, 0.08);
  EXPECT_TRUE(holm({}, 0.05).empty());
}

TEST(LeastPermutationP, CountsTheWaysToDivideTheValues) {
  EXPECT_NEAR(least_permutation_p(3, 3), 2.0 / 20.0, 1e-12);
  EXPECT_NEAR(least_permutation_p(5, 5), 2.0 / 252.0, 1e-12);
}

TEST(FisherExact, EqualsHandComputedProbabilities) {
  // With 3 of 3 against 0 of 3, the two extreme tables have probability 1 / C(6, 3) each.
  EXPECT_NEAR(fisher_exact_p(3, 3, 0, 3), 0.1, 1e-12);
  EXPECT_NEAR(fisher_exact_p(3, 3, 2, 3), 1.0, 1e-12);
  // With 5 of 5 against 2 of 5: C(5,5) C(5,2) / C(10,7) = 10/120 for each of the two extremes.
  EXPECT_NEAR(fisher_exact_p(5, 5, 2, 5), 2.0 * 10.0 / 120.0, 1e-12);
}

TEST(CensoredMedian, CountsUnfinishedRunsAsLonger) {
  EXPECT_EQ(censored_median({3.0, 1.0, 2.0}, 3), 2.0);
  EXPECT_EQ(censored_median({3.0, 1.0, 2.0}, 5), 3.0);
  EXPECT_FALSE(censored_median({1.0, 2.0}, 5).has_value());
  EXPECT_FALSE(censored_median({}, 0).has_value());
}

}  // namespace
}  // namespace syncopate::bench
