// Statistics of a few repeated runs: mean and spread of one variant, differences of many variants
// at once, and durations where some are only known to be longer. Median and percentiles of many
// measurements are in bench/harness/measure.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace syncopate::bench {

// Returns the mean of the values. Throws InternalError when there are none.
double mean(std::span<const double> values);

// Returns the standard deviation of the sample, divided by n - 1. Empty for fewer than two values.
std::optional<double> standard_deviation(std::span<const double> values);

// Returns the smallest value that at least half of the values are at most. Throws InternalError
// when there are none.
double lower_median(std::vector<double> values);

// Returns the percentile of a histogram: the smallest value t such that at least `share`, in (0,
// 1], of all values are at most t. counts[t] is the number of values t. 0 for an empty histogram.
std::int64_t percentile_of_counts(std::span<const std::int64_t> counts, double share);

// The range of several standard normal variables, divided by the square root of an independent
// chi-square variable over its degrees of freedom. Probabilities are computed to 1e-6. Source: J.
// W. Tukey, The Problem of Multiple Comparisons (1953).
class StudentizedRange {
 public:
  // means: number of variables, at least 2. degrees: of freedom, at least 1; fractions and infinity
  // are allowed.
  StudentizedRange(int means, double degrees);
  // Returns the probability of a range above this one.
  double tail(double range) const;
  // Returns the range that is exceeded with this probability, from 1e-5 to 0.5.
  double quantile(double tail) const;

 private:
  int means_;
  std::vector<std::pair<double, double>> scales_;  // with their probabilities
};

struct Interval {
  double low = 0.0;
  double high = 0.0;
  bool contains(double value) const noexcept { return low <= value && value <= high; }
};

// Welch's comparison of two means, which allows for different variances, where `means` means are
// compared with each other: the probability that any two of them seem to differ by chance. Sources:
// B. L. Welch, Biometrika 34 (1947), 28-35; P. A. Games, J. F. Howell, Journal of Educational
// Statistics 1 (1976), 113-125.
struct WelchTest {
  double difference = 0.0;  // mean(a) - mean(b)
  double standard_error = 0.0;
  double degrees = 0.0;  // degrees of freedom; infinite if neither sample has any spread

  // Returns the probability that any two of the means differ, in standard errors, at least as much
  // as these two if all are equal in truth.
  double p_value(int means) const;
  // Returns half the width of the interval of this difference. With probability 1 - level all such
  // intervals of the means have their true difference.
  double reach(double level, int means) const;
  // Returns the true difference that a test at this level finds with a probability of about
  // `power`, in (0, 1). The statistic then has a noncentral t distribution; that the degrees of
  // freedom are estimates is not taken into account.
  double detectable(double level, int means, double power) const;
  // Returns the test with another source of error, of this variance, that more values would not
  // reduce. Source: JCGM 100:2008 (GUM), sections 4.3.7 and G.4.
  WelchTest with_systematic_error(double variance) const;
  // Returns the test of `factor` times as many values, where there were `count`, of equal spread.
  WelchTest with_more_values(double factor, int count) const;
};

// Returns nothing if either sample has fewer than two values or a value that is not finite.
std::optional<WelchTest> welch_test(std::span<const double> a, std::span<const double> b);

// Returns the smallest two-sided p-value that an exact permutation test of `n` against `m` values
// can give: 2 of all the ways to divide them are as extreme as the most extreme one. Source: R. A.
// Fisher, The Design of Experiments (1935), section 21.
double least_permutation_p(int n, int m);

// The time until an event, or until the last look for it.
struct Duration {
  double value = 0.0;
  bool is_censored = false;  // the event came later, or never
};

// The log-rank test of two samples of durations. Up to 22 durations its p-values are exact: shares
// of all ways to divide the durations into two samples of these sizes; beyond that the statistic
// counts as normal. Source: R. Peto, J. Peto, Journal of the Royal Statistical Society A 135
// (1972), 185-207.
struct LogRankTest {
  double excess = 0.0;   // events of the first sample above those expected; > 0: it is sooner
  double p_value = 1.0;  // to both sides
  double least_p = 1.0;  // the smallest that any division of these durations has
};
LogRankTest log_rank_test(std::span<const Duration> a, std::span<const Duration> b);

}  // namespace syncopate::bench
