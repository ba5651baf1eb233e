// What may be said about a few repeated runs: mean and spread of one variant, and whether two
// variants differ by more than their seeds do. Median and percentiles are in
// bench/harness/measure.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace syncopate::bench {

// Throws InternalError when empty.
double mean(std::span<const double> values);

// Of the sample: divided by n - 1. Nothing for fewer than two values.
std::optional<double> standard_deviation(std::span<const double> values);

// The smallest t that at least `share`, in (0, 1], of all do not exceed; counts[t] are of value t.
// 0 when there are none.
std::int64_t percentile_of_counts(std::span<const std::int64_t> counts, double share);

// I_x(a, b), the regularised incomplete beta function; a, b > 0, x in [0, 1].
// Source: continued fraction 8.17.22 of the NIST Digital Library of Mathematical Functions.
double incomplete_beta(double a, double b, double x);

// The value that Student's t with so many degrees of freedom (> 0, fractions allowed) does not
// exceed with this probability, in (0, 1). Infinitely many degrees: the normal distribution's.
double student_t_quantile(double probability, double degrees);

struct Interval {
  double low = 0.0;
  double high = 0.0;
  bool contains(double value) const noexcept { return low <= value && value <= high; }
};

struct Difference {
  double value = 0.0;
  Interval interval;  // 95 %
  bool is_significant() const noexcept { return !interval.contains(0.0); }
};

// mean(a) - mean(b), with Welch's interval: variances may differ. Nothing when either has fewer
// than two values. Without any spread in either the interval is one point.
// Source: B. L. Welch, Biometrika 34 (1947), 28-35; degrees of freedom of Welch-Satterthwaite.
std::optional<Difference> welch_difference(std::span<const double> a, std::span<const double> b);

// The mean of a[i] - b[i], with Student's interval: what is the same in both of a pair, such as the
// seed, does not widen it. Nothing for fewer than two pairs. Throws InternalError unless both have
// as many values.
std::optional<Difference> paired_difference(std::span<const double> a, std::span<const double> b);

}  // namespace syncopate::bench
