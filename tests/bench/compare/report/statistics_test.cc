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

TEST(WelchDifference, OfEqualVariancesEqualsStudents) {
  // Both samples have variance 1 and n = 3, so the difference has standard error sqrt(2/3), with 4
  // degrees of freedom and t = 2.776445.
  const auto apart = welch_difference(Values{11, 12, 13}, Values{1, 2, 3});
  ASSERT_TRUE(apart.has_value());
  EXPECT_DOUBLE_EQ(apart->value, 10.0);
  EXPECT_NEAR(apart->interval.high, 10.0 + 2.776445 * std::sqrt(2.0 / 3.0), 1e-5);
  EXPECT_NEAR(apart->interval.low, 10.0 - 2.776445 * std::sqrt(2.0 / 3.0), 1e-5);
  EXPECT_TRUE(apart->is_significant());
}

TEST(WelchDifference, OfUnequalVariancesHasFewerDegreesOfFreedom) {
  // The samples have variances 1 and 100 and n = 3, so s = 101/3 and the degrees of freedom are
  // (101/3)^2 / ((1/3)^2/2 + (100/3)^2/2) = 2.04.
  const auto apart = welch_difference(Values{1, 2, 3}, Values{-10, 0, 10});
  const double reach =
      student_t_quantile(0.975, 2 * 101.0 * 101.0 / 10001.0) * std::sqrt(101.0 / 3.0);
  EXPECT_NEAR(apart->interval.high, 2.0 + reach, 1e-9);
  EXPECT_FALSE(apart->is_significant());
}

TEST(WelchDifference, OfValuesWithoutSpreadIsCertain) {
  const auto apart = welch_difference(Values{5, 5}, Values{3, 3});
  EXPECT_EQ(apart->interval.low, 2.0);
  EXPECT_EQ(apart->interval.high, 2.0);
  EXPECT_FALSE(welch_difference(Values{5, 5}, Values{5, 5})->is_significant());
}

TEST(PairedDifference, IsNotWidenedByTheSpreadOverPairs) {
  // The differences 1, 1 and 4 have mean 2, deviation sqrt(3) and standard error 1; with 2 degrees
  // of freedom, t = 4.302653.
  const auto apart = paired_difference(Values{101, 201, 304}, Values{100, 200, 300});
  ASSERT_TRUE(apart.has_value());
  EXPECT_DOUBLE_EQ(apart->value, 2.0);
  EXPECT_NEAR(apart->interval.high, 2.0 + 4.302653, 1e-5);
  EXPECT_FALSE(paired_difference(Values{5}, Values{3}).has_value());
}

TEST(WelchDifference, OfASingleValueIsUnknown) {
  EXPECT_FALSE(welch_difference(Values{5}, Values{3, 4}).has_value());
}

}  // namespace
}  // namespace syncopate::bench
