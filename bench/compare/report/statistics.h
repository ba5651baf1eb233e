// Statistics of a few repeated runs: the mean and spread of one variant, differences between many
// variants at once, and censored durations. Median and percentiles of many measurements are in
// bench/harness/measure.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace syncopate::bench {

// Returns the mean of the values. Throws InternalError when `values` is empty.
double mean(std::span<const double> values);

// Returns the natural logarithms of the values.
std::vector<double> logarithms_of(std::span<const double> values);

// Returns the standard deviation of the sample, with the divisor n - 1; nullopt for fewer than two
// values.
std::optional<double> standard_deviation(std::span<const double> values);

// Returns the lower median: the smallest of the values such that at least half of the values are
// not above it. Throws InternalError when `values` is empty.
double lower_median(std::vector<double> values);

// Returns a percentile of a histogram: the smallest t such that at least `share` of all values are
// not above t. counts[t] is the number of values that are t; `share` is in (0, 1]. Returns 0 for an
// empty histogram.
std::int64_t percentile_of_counts(std::span<const std::int64_t> counts, double share);

// The studentized range distribution: the distribution of the range of several standard normal
// variables, divided by sqrt(C / d), where C is an independent chi-square variable with d degrees
// of freedom. Probabilities have an error of about 1e-6. Source: J. W. Tukey, The Problem of
// Multiple Comparisons (1953).
class StudentizedRange {
 public:
  // Makes the distribution. means: the number of variables, at least 2. degrees: the degrees of
  // freedom d, at least 1; may be a fraction or infinite.
  StudentizedRange(int means, double degrees);
  // Returns the probability that the variable is above `range`.
  double tail(double range) const;
  // Returns the value that is exceeded with the probability `tail`, which is from 1e-5 to 0.5.
  double quantile(double tail) const;

 private:
  int means_;
  // Values of the divisor sqrt(C / d), where C is a chi-square variable with d degrees of freedom,
  // with their probabilities.
  std::vector<std::pair<double, double>> scales_;
};

struct Interval {
  double low = 0.0;
  double high = 0.0;
  bool contains(double value) const noexcept { return low <= value && value <= high; }
};

// Welch's comparison of two means, which allows different variances. In the functions, `means` is
// the number of means that are all compared with each other. The functions correct for the
// probability that any two of these means seem to differ by chance. Sources: B. L. Welch,
// Biometrika 34 (1947), 28-35; P. A. Games, J. F. Howell, Journal of Educational Statistics 1
// (1976), 113-125.
struct WelchTest {
  double difference = 0.0;  // mean(a) - mean(b)
  double standard_error = 0.0;
  double degrees = 0.0;  // degrees of freedom; infinite if no sample has any spread

  // Returns the p-value: the probability that, if all true means are equal, any two of the means
  // differ by at least as many standard errors as the two means of this test.
  double p_value(int means) const;
  // Returns half the width of the confidence interval of `difference`. With probability 1 - level,
  // the intervals of all pairs of the compared means contain the true differences.
  double reach(double level, int means) const;
  // Returns the true difference that a test at this level finds with a probability of about
  // `power`, in (0, 1). Uses the noncentral t distribution of the statistic, and takes the
  // estimated degrees of freedom as exact.
  double detectable(double level, int means, double power) const;
  // Returns the test with an additional source of error of this variance. More values would not
  // reduce this error. Source: JCGM 100:2008 (GUM), sections 4.3.7 and G.4.
  WelchTest with_systematic_error(double variance) const;
  // Returns the test that samples with `factor` times as many values, the same means and the same
  // spread would give. count: the number of values that a sample has now.
  WelchTest with_more_values(double factor, int count) const;
};

// Compares the means of two samples. Returns nullopt if either sample has fewer than two values or
// a value that is not finite.
std::optional<WelchTest> welch_test(std::span<const double> a, std::span<const double> b);

// Returns the smallest two-sided p-value of an exact permutation test of n against m values: 2 /
// (the number of ways to divide n + m values into n and m). Source: R. A. Fisher, The Design of
// Experiments (1935), section 21.
double least_permutation_p(int n, int m);

// The time until an event, or until the last observation if the event has not happened by then.
struct Duration {
  double value = 0.0;
  bool is_censored = false;  // the event happened later than `value`, or never
};

// The log-rank test of two samples of durations. For up to 22 durations, the p-values are exact:
// they are fractions of all ways to divide the durations into two samples of these sizes. For more
// durations, the statistic is taken as normally distributed. Source: R. Peto, J. Peto, Journal of
// the Royal Statistical Society A 135 (1972), 185-207.
struct LogRankTest {
  // The number of events of the first sample minus the expected number; above 0 if the events of
  // the first sample come sooner.
  double excess = 0.0;
  double p_value = 1.0;  // two-sided
  double least_p = 1.0;  // the smallest p-value of any division of these durations
};
LogRankTest log_rank_test(std::span<const Duration> a, std::span<const Duration> b);

}  // namespace syncopate::bench
