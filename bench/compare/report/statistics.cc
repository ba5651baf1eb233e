#include "bench/compare/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

double away_from_zero(double value) {
  constexpr double kTiny = 1e-300;
  return std::abs(value) < kTiny ? kTiny : value;
}

// The continued fraction of I_x(a, b), by Lentz's method; it converges fast for x < (a+1)/(a+b+2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMostTerms = 10'000;
  double numerator = 1.0;
  double denominator = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = denominator;
  const auto take = [&](double coefficient) {
    denominator = 1.0 / away_from_zero(1.0 + coefficient * denominator);
    numerator = away_from_zero(1.0 + coefficient / numerator);
    fraction *= numerator * denominator;
    return std::abs(numerator * denominator - 1.0) < 4 * std::numeric_limits<double>::epsilon();
  };
  for (int m = 1; m <= kMostTerms; ++m) {
    const double twice = 2.0 * m;
    take(m * (b - m) * x / ((a + twice - 1.0) * (a + twice)));
    if (take(-(a + m) * (a + b + m) * x / ((a + twice) * (a + twice + 1.0)))) break;
  }
  return fraction;
}

// From this number of degrees of freedom on, Student's distribution is computed as the normal one:
// it differs from it by less than 1e-6, and the incomplete beta function would lose its digits.
constexpr double kNormalDegrees = 1e6;

// Returns the probability that Student's t lies within -t and t.
double central_probability(double t, double degrees) {
  if (degrees > kNormalDegrees) return std::erf(t / std::sqrt(2.0));
  return incomplete_beta(0.5, degrees / 2.0, t * t / (degrees + t * t));
}

// The squared standard error of a mean, and its term in the denominator of Welch-Satterthwaite.
struct MeanError {
  double squared = 0.0;
  double share = 0.0;
};

MeanError mean_error(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  const double deviation = standard_deviation(values).value_or(0.0);
  const double squared = deviation * deviation / count;
  return {squared, squared * squared / (count - 1.0)};
}

// The mean over the chi-square distribution of the probability that a normal variable with this
// mean exceeds t: that of a noncentral t variable. Integrates by the trapezoidal rule.
class NoncentralT {
 public:
  explicit NoncentralT(double degrees) {
    if (degrees > kNormalDegrees) {
      points_.push_back({1.0, 1.0});
      return;
    }
    // The scale is the square root of a chi-square variable over its degrees of freedom.
    constexpr int kSteps = 100;
    const double step = (1.0 + 9.0 / std::sqrt(degrees)) / kSteps;
    const double log_factor =
        std::log(2.0) + degrees / 2.0 * std::log(degrees / 2.0) - std::lgamma(degrees / 2.0);
    for (int i = 1; i <= kSteps; ++i) {
      const double scale = step * i;
      const double log_density =
          log_factor + (degrees - 1.0) * std::log(scale) - degrees * scale * scale / 2.0;
      points_.push_back({scale, step * std::exp(log_density)});
    }
  }
  double probability_above(double t, double noncentrality) const {
    double sum = 0.0;
    for (const auto& [scale, weight] : points_) {
      sum += weight * 0.5 * std::erfc((t * scale - noncentrality) / std::sqrt(2.0));
    }
    return sum;
  }

 private:
  std::vector<std::pair<double, double>> points_;  // scales and their weights
};

}  // namespace

double mean(std::span<const double> values) {
  check(!values.empty(), "the mean of no values");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double middle = mean(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::int64_t percentile_of_counts(std::span<const std::int64_t> counts, double share) {
  const auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const double wanted = share * static_cast<double>(total);
  std::int64_t seen = 0;
  for (std::size_t value = 0; value < counts.size(); ++value) {
    seen += counts[value];
    if (seen > 0 && static_cast<double>(seen) >= wanted) return static_cast<std::int64_t>(value);
  }
  return 0;
}

double incomplete_beta(double a, double b, double x) {
  check(a > 0.0 && b > 0.0 && x >= 0.0 && x <= 1.0,
        "incomplete_beta needs a, b > 0 and x in [0, 1]");
  if (x == 0.0 || x == 1.0) return x;
  const double factor = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                 a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1.0) / (a + b + 2.0)) return factor * beta_fraction(a, b, x) / a;
  return 1.0 - factor * beta_fraction(b, a, 1.0 - x) / b;
}

double student_t_quantile(double probability, double degrees) {
  check(probability > 0.0 && probability < 1.0 && degrees > 0.0,
        "student_t_quantile needs a probability in (0, 1) and degrees of freedom > 0");
  if (probability < 0.5) return -student_t_quantile(1.0 - probability, degrees);
  const double central = 2.0 * probability - 1.0;
  double low = 0.0;
  double high = 1.0;
  while (central_probability(high, degrees) < central && high < 1e12) high *= 2.0;
  // Bisects until no number lies between low and high; Newton's method could fail in the tails.
  for (double middle = (low + high) / 2; low < middle && middle < high; middle = (low + high) / 2) {
    (central_probability(middle, degrees) < central ? low : high) = middle;
  }
  return high;
}

double WelchTest::p_value() const {
  if (difference == 0.0) return 1.0;
  if (standard_error == 0.0) return 0.0;
  const double t = difference / standard_error;
  if (degrees > kNormalDegrees) return std::erfc(std::abs(t) / std::sqrt(2.0));
  return incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t));
}

WelchTest WelchTest::with_systematic_error(double variance) const {
  const double squared = standard_error * standard_error;
  if (variance == 0.0) return *this;
  // The degrees of freedom follow Welch-Satterthwaite, where this source of error has infinitely
  // many.
  const double share = (squared + variance) / squared;
  return {difference, std::sqrt(squared + variance),
          squared == 0.0 ? std::numeric_limits<double>::infinity() : degrees * share * share};
}

double WelchTest::reach(double level) const {
  if (standard_error == 0.0) return 0.0;
  return student_t_quantile(1.0 - level / 2.0, degrees) * standard_error;
}

double WelchTest::detectable(double level, double power) const {
  if (standard_error == 0.0) return 0.0;
  const double critical = student_t_quantile(1.0 - level / 2.0, degrees);
  const NoncentralT statistic(degrees);
  double low = 0.0;  // in standard errors
  double high = 1.0;
  while (statistic.probability_above(critical, high) < power && high < 1e9) high *= 2.0;
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2.0;
    (statistic.probability_above(critical, middle) < power ? low : high) = middle;
  }
  return high * standard_error;
}

std::optional<WelchTest> welch_test(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const double difference = mean(a) - mean(b);
  const MeanError error_a = mean_error(a);
  const MeanError error_b = mean_error(b);
  const double squared = error_a.squared + error_b.squared;
  if (!std::isfinite(difference) || !std::isfinite(squared)) return std::nullopt;
  const double degrees = squared == 0.0 ? std::numeric_limits<double>::infinity()
                                        : squared * squared / (error_a.share + error_b.share);
  return WelchTest{difference, std::sqrt(squared), degrees};
}

std::vector<HolmStep> holm(std::span<const double> p_values, double family_level) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p_values[i]; });
  std::vector<HolmStep> steps(p_values.size());
  double adjusted = 0.0;
  double level = 0.0;
  bool rejects = true;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    adjusted = std::max(adjusted, std::min(1.0, left * p_values[order[rank]]));
    // All hypotheses after the first that is not rejected are accepted at that one's level.
    if (rejects) level = family_level / left;
    rejects = rejects && adjusted <= family_level;
    steps[order[rank]] = {level, adjusted};
  }
  return steps;
}

double least_permutation_p(int n, int m) {
  check(n > 0 && m > 0, "least_permutation_p needs values on both sides");
  const double log_ways = std::lgamma(n + m + 1.0) - std::lgamma(n + 1.0) - std::lgamma(m + 1.0);
  return std::min(1.0, 2.0 * std::exp(-log_ways));
}

double fisher_exact_p(int k, int n, int m, int l) {
  check(0 <= k && k <= n && 0 <= m && m <= l, "fisher_exact_p needs counts from 0 to their totals");
  const auto log_choose = [](int of, int chosen) {
    return std::lgamma(of + 1.0) - std::lgamma(chosen + 1.0) - std::lgamma(of - chosen + 1.0);
  };
  const int successes = k + m;
  const auto log_probability = [&](int first) {
    return log_choose(n, first) + log_choose(l, successes - first) - log_choose(n + l, successes);
  };
  constexpr double kRounding = 1e-9;  // probabilities that are equal differ by rounding
  const double observed = log_probability(k) + kRounding;
  double sum = 0.0;
  for (int first = std::max(0, successes - l); first <= std::min(n, successes); ++first) {
    const double one = log_probability(first);
    if (one <= observed) sum += std::exp(one);
  }
  return std::min(1.0, sum);
}

std::optional<double> censored_median(std::vector<double> ended, int runs) {
  const std::size_t needed = (static_cast<std::size_t>(std::max(runs, 0)) + 1) / 2;
  if (needed == 0 || ended.size() < needed) return std::nullopt;
  std::ranges::sort(ended);
  return ended[needed - 1];
}

}  // namespace syncopate::bench
