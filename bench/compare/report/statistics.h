// Statistics of a few repeated runs: mean and spread of one variant, the difference of two
// variants, and a procedure for many differences at once. Median and percentiles are in
// bench/harness/measure.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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

// Welch's comparison of two means, which allows for different variances. Source: B. L. Welch,
// Biometrika 34 (1947), 28-35; degrees of freedom of Welch-Satterthwaite.
struct WelchTest {
  double difference = 0.0;  // mean(a) - mean(b)
  double standard_error = 0.0;
  double degrees = 0.0;  // degrees of freedom; infinite if neither sample has any spread

  // Returns the probability of a difference at least as large as `difference` if the true
  // difference is zero, to both sides.
  double p_value() const;
  // Returns the test with another source of error, of this variance, that more values would not
  // reduce. Source: JCGM 100:2008 (GUM), sections 4.3.7 and G.4.
  WelchTest with_systematic_error(double variance) const;
  // Returns half the width of the interval that has the true difference with probability 1 - level.
  double reach(double level) const;
  // Returns the true difference that a test at this level finds with a probability of about
  // `power`, in (0, 1). The statistic then has a noncentral t distribution; that the degrees of
  // freedom are estimates is not taken into account.
  double detectable(double level, double power) const;
};

// Returns nothing if either sample has fewer than two values or a value that is not finite.
std::optional<WelchTest> welch_test(std::span<const double> a, std::span<const double> b);

// Returns the smallest two-sided p-value that an exact permutation test of `n` against `m` values
// can give: 2 of all the ways to divide them are as extreme as the most extreme one. Source: R. A.
// Fisher, The Design of Experiments (1935), section 21.
double least_permutation_p(int n, int m);

// What Holm's procedure decides about one of several hypotheses.
struct HolmStep {
  double level = 0.0;       // the level at which the hypothesis was tested
  double adjusted_p = 1.0;  // at most `family_level` if the hypothesis is rejected
};

// Tests several hypotheses so that the probability of rejecting any true one is at most
// `family_level`, however they depend on each other. Returns one step per p-value, in their order.
// Source: S. Holm, Scandinavian Journal of Statistics 6 (1979), 65-70.
std::vector<HolmStep> holm(std::span<const double> p_values, double family_level);

// Returns the two-sided probability that k of n and m of l successes differ by chance at least as
// much as they do. Source: R. A. Fisher, Journal of the Royal Statistical Society 85 (1922), 87-94.
double fisher_exact_p(int k, int n, int m, int l);

// Returns the median of `runs` durations of which only `ended` are known and all others are longer:
// the smallest duration that at least half of the runs have reached. Empty if fewer than half
// ended. Source: E. L. Kaplan, P. Meier, Journal of the American Statistical Association 53 (1958),
// 457-481.
std::optional<double> censored_median(std::vector<double> ended, int runs);

}  // namespace syncopate::bench
