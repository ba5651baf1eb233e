// Statistics of a few repeated runs: mean and spread of one variant, and whether the difference of
// two variants is significant. Median and percentiles are in bench/harness/measure.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace syncopate::bench {

// Returns the mean of the values. Throws InternalError when there are none.
double mean(std::span<const double> values);

// Returns the standard deviation of the sample, divided by n - 1. Empty for fewer than two values.
std::optional<double> standard_deviation(std::span<const double> values);

// Returns the percentile of a histogram: the smallest value t such that at least `share`, in (0,
// 1], of all values are at most t. counts[t] is the number of values t. 0 for an empty histogram.
std::int64_t percentile_of_counts(std::span<const std::int64_t> counts, double share);

// Returns I_x(a, b), the regularised incomplete beta function; a, b > 0, x in [0, 1]. Source:
// continued fraction 8.17.22 of the NIST Digital Library of Mathematical Functions.
double incomplete_beta(double a, double b, double x);

// Returns the quantile of Student's t distribution. probability in (0, 1); degrees of freedom > 0,
// fractions and infinity (the normal distribution) allowed.
double student_t_quantile(double probability, double degrees);

struct Interval {
  double low = 0.0;
  double high = 0.0;
  bool contains(double value) const noexcept { return low <= value && value <= high; }
};

struct Difference {
  double value = 0.0;
  Interval interval;  // the 95 % confidence interval
  bool is_significant() const noexcept { return !interval.contains(0.0); }
};

// Returns mean(a) - mean(b) with Welch's interval, which allows for different variances. Empty if
// either has fewer than two values. If neither has any spread, the interval is one point. Source:
// B. L. Welch, Biometrika 34 (1947), 28-35; degrees of freedom of Welch-Satterthwaite.
std::optional<Difference> welch_difference(std::span<const double> a, std::span<const double> b);

// Returns the mean of a[i] - b[i] with Student's interval, which is not widened by what both values
// of a pair have in common, such as the seed. Empty for fewer than two pairs. Throws InternalError
// if the sizes differ.
std::optional<Difference> paired_difference(std::span<const double> a, std::span<const double> b);

}  // namespace syncopate::bench
