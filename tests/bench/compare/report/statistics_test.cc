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

TEST(LowerMedian, IsOneOfTheValues) {
  EXPECT_EQ(lower_median({3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(lower_median({4.0, 1.0, 2.0, 3.0}), 2.0);
  EXPECT_THROW(lower_median({}), InternalError);
}

// scipy.stats.studentized_range of SciPy 1.17.
TEST(StudentizedRange, EqualsAnIndependentComputation) {
  EXPECT_NEAR(StudentizedRange(3, 10.0).tail(3.876777), 0.05, 1e-6);
  EXPECT_NEAR(StudentizedRange(3, 10.0).tail(3.5), 0.07710331, 1e-6);
  EXPECT_NEAR(StudentizedRange(7, 4.0).tail(7.0), 0.05126273, 1e-6);
  EXPECT_NEAR(StudentizedRange(7, 4.0).quantile(0.05), 7.052554, 1e-4);
  EXPECT_NEAR(StudentizedRange(5, 3.3).quantile(0.05), 7.029616, 1e-4);
  EXPECT_NEAR(StudentizedRange(7, 1e9).quantile(0.05), 4.169554, 1e-4);
}

// The range of two means is sqrt(2) times Student's t. Its quantiles have closed forms for 1 and
// 2 degrees of freedom: tan(pi (p - 1/2)) and (2p - 1) sqrt(2 / (4 p (1 - p))).
TEST(StudentizedRange, OfTwoMeansIsThatOfStudent) {
  const auto student = [](double p, double degrees) {
    return StudentizedRange(2, degrees).quantile(2.0 * (1.0 - p)) / std::sqrt(2.0);
  };
  EXPECT_NEAR(student(0.9, 1), std::tan(M_PI * 0.4), 1e-3);
  EXPECT_NEAR(student(0.9, 2), 0.8 * std::sqrt(2.0 / (4 * 0.9 * 0.1)), 1e-4);
  EXPECT_NEAR(student(0.975, 4), 2.776445, 1e-4);
  EXPECT_NEAR(student(0.975, 120), 1.979930, 1e-4);
  EXPECT_NEAR(student(0.975, std::numeric_limits<double>::infinity()), 1.959964, 1e-4);
}

TEST(StudentizedRange, FindsRangesOfSmallTails) {
  for (const double tail : {0.5, 0.05, 0.001, 1e-5}) {
    const StudentizedRange range(5, 3.3);
    EXPECT_NEAR(range.tail(range.quantile(tail)) / tail, 1.0, 0.05) << tail;
  }
}

// power.t.test of R: 20 values a side with a deviation of 1 find a difference of 1 at the level 5 %
// with a probability of 0.8689528.
TEST(WelchTest, HasThePowerOfANoncentralT) {
  const WelchTest test{.standard_error = std::sqrt(2.0 / 20.0), .degrees = 38.0};
  EXPECT_NEAR(test.detectable(0.05, 2, 0.8689528), 1.0, 1e-4);
}

// As many degrees of freedom count as infinitely many: the quantiles 1.959964 and
// 0.8689528's 1.121482 of the normal distribution add up.
TEST(WelchTest, HasThePowerOfANormalVariableWithManyDegrees) {
  for (const double degrees : {1e5, 1e7}) {
    const WelchTest test{.standard_error = 1.0, .degrees = degrees};
    EXPECT_NEAR(test.detectable(0.05, 2, 0.8689528), 1.959964 + 1.121482, 1e-3) << degrees;
  }
}

TEST(WelchTest, OfEqualVariancesEqualsStudents) {
  // Both samples have variance 1 and n = 3, so the difference has standard error sqrt(2/3), with 4
  // degrees of freedom and t = 2.776445.
  const auto test = welch_test(Values{11, 12, 13}, Values{1, 2, 3});
  ASSERT_TRUE(test.has_value());
  EXPECT_DOUBLE_EQ(test->difference, 10.0);
  EXPECT_DOUBLE_EQ(test->degrees, 4.0);
  EXPECT_NEAR(test->reach(0.05, 2), 2.776445 * std::sqrt(2.0 / 3.0), 1e-4);
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
  EXPECT_NEAR(test.p_value(2), 0.05, 1e-6);
  const WelchTest normal{.difference = -1.959964,
                         .standard_error = 1.0,
                         .degrees = std::numeric_limits<double>::infinity()};
  EXPECT_NEAR(normal.p_value(2), 0.05, 1e-6);
}

TEST(WelchTest, OfValuesWithoutSpreadIsCertain) {
  EXPECT_EQ(welch_test(Values{5, 5}, Values{3, 3})->p_value(2), 0.0);
  EXPECT_EQ(welch_test(Values{5, 5}, Values{3, 3})->reach(0.05, 2), 0.0);
  EXPECT_EQ(welch_test(Values{5, 5}, Values{5, 5})->p_value(2), 1.0);
}

TEST(WelchTest, AddsASystematicErrorThatMoreValuesDoNotReduce) {
  // The squared errors 4 and 12 add to 16, and the degrees of freedom 5 grow by (16 / 4)^2.
  const WelchTest test{.difference = 1.0, .standard_error = 2.0, .degrees = 5.0};
  EXPECT_DOUBLE_EQ(test.with_systematic_error(12.0).standard_error, 4.0);
  EXPECT_DOUBLE_EQ(test.with_systematic_error(12.0).degrees, 80.0);
  EXPECT_DOUBLE_EQ(test.with_systematic_error(0.0).degrees, 5.0);
}

// The range of three means of 10 degrees of freedom exceeds 3.876777 with a probability of 5 %.
TEST(WelchTest, OfSeveralMeansIsStricter) {
  const WelchTest test{
      .difference = 3.876777 / std::sqrt(2.0), .standard_error = 1.0, .degrees = 10.0};
  EXPECT_NEAR(test.p_value(3), 0.05, 1e-6);
  EXPECT_LT(test.p_value(2), 0.03);
  EXPECT_NEAR(test.reach(0.05, 3), 3.876777 / std::sqrt(2.0), 1e-4);
}

TEST(WelchTest, WithMoreValuesHasASmallerErrorAndMoreDegrees) {
  const WelchTest test =
      WelchTest{.difference = 1.0, .standard_error = 2.0, .degrees = 8.0}.with_more_values(4.0, 5);
  EXPECT_DOUBLE_EQ(test.standard_error, 1.0);
  EXPECT_DOUBLE_EQ(test.degrees, 38.0);  // 2 (20 - 1)
}

TEST(WelchTest, OfASingleValueOrOfNaNIsUnknown) {
  EXPECT_FALSE(welch_test(Values{5}, Values{3, 4}).has_value());
  EXPECT_FALSE(welch_test(Values{5, NAN}, Values{3, 4}).has_value());
}

TEST(LeastPermutationP, CountsTheWaysToDivideTheValues) {
  EXPECT_NEAR(least_permutation_p(3, 3), 2.0 / 20.0, 1e-12);
  EXPECT_NEAR(least_permutation_p(5, 5), 2.0 / 252.0, 1e-12);
}

using Durations = std::vector<Duration>;

// With 3 of 3 that ended against 0 of 3, two of the C(6, 3) = 20 divisions are as extreme.
TEST(LogRank, OfRunsThatAllEndedAndRunsThatDidNotIsExact) {
  const Durations ended = {{1.0}, {1.0}, {1.0}};
  const Durations censored = {{2.0, true}, {2.0, true}, {2.0, true}};
  const LogRankTest test = log_rank_test(ended, censored);
  EXPECT_NEAR(test.p_value, 0.1, 1e-12);
  EXPECT_NEAR(test.least_p, 0.1, 1e-12);
  EXPECT_NEAR(test.excess, 1.5, 1e-12);  // half of the three events were expected
  EXPECT_NEAR(log_rank_test(censored, ended).excess, -1.5, 1e-12);
}

// The times 1, 2, 3, 4 have the scores 1 - 1/4, 1 - 1/4 - 1/3, 1 - 1/4 - 1/3 - 1/2 and -13/12. Of
// the six divisions 2 are as extreme as {1, 2} against {3, 4}.
TEST(LogRank, HasTheScoresOfPetoAndPeto) {
  const LogRankTest test = log_rank_test(Durations{{1.0}, {2.0}}, Durations{{3.0}, {4.0}});
  EXPECT_NEAR(test.excess, 3.0 / 4.0 + 5.0 / 12.0, 1e-12);
  EXPECT_NEAR(test.p_value, 2.0 / 6.0, 1e-12);
}

TEST(LogRank, OfDurationsThatNobodySawEndIsNoEvidence) {
  const Durations censored(5, Duration{2.0, true});
  const LogRankTest test = log_rank_test(censored, censored);
  EXPECT_EQ(test.p_value, 1.0);
  EXPECT_EQ(test.least_p, 1.0);
}

// With 11 values a side the test is exact and with 12 nearly normal: both see one difference alike.
TEST(LogRank, IsNearlyNormalForManyDurations) {
  const auto shifted = [](int count, double by) {
    Durations all;
    for (int i = 0; i < count; ++i) all.push_back({i + by});
    return all;
  };
  const double exact = log_rank_test(shifted(11, 0.0), shifted(11, 4.5)).p_value;
  const double normal = log_rank_test(shifted(12, 0.0), shifted(12, 4.5)).p_value;
  EXPECT_NEAR(exact, normal, 0.03);
  EXPECT_LT(normal, 0.1);
}

}  // namespace
}  // namespace syncopate::bench
