#include "bench/compare/report/statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr double kSqrt2 = std::numbers::sqrt2;

// Returns the probability that a standard normal variable is above z.
double normal_tail(double z) { return 0.5 * std::erfc(z / kSqrt2); }

// From this number of degrees of freedom on, a distribution is computed as if there were infinitely
// many.
constexpr double kMostDegrees = 1e6;

// Returns points, with their probabilities, of the square root of a chi-square variable over its
// degrees of freedom. They are equally far apart in the logarithm, where the density is close to
// normal, so that the sum over few points is nearly exact.
std::vector<std::pair<double, double>> scale_points(double degrees) {
  if (degrees > kMostDegrees) return {{1.0, 1.0}};
  constexpr double kLeastDensity = 1e-10;
  const double step = 0.5 / std::sqrt(2.0 * degrees);
  const auto density = [&](double u) {
    return std::exp(degrees * (u - 0.5 * std::expm1(2.0 * u)));
  };
  std::vector<std::pair<double, double>> points;
  double sum = 0.0;
  for (const int direction : {1, -1}) {
    for (int i = direction == 1 ? 0 : -1; density(i * step) > kLeastDensity; i += direction) {
      points.emplace_back(std::exp(i * step), density(i * step));
      sum += points.back().second;
    }
  }
  for (auto& [scale, probability] : points) probability /= sum;
  return points;
}

// Points of the standard normal density, with the probabilities of the values between them.
constexpr int kNormalPoints = 47;
constexpr double kNormalStep = 0.25;
struct NormalPoint {
  double z;
  double probability;
  double below;  // the probability of a value below z
};
std::array<NormalPoint, kNormalPoints> normal_points() {
  std::array<NormalPoint, kNormalPoints> points{};
  for (int i = 0; i < kNormalPoints; ++i) {
    const double z = kNormalStep * (i - kNormalPoints / 2);
    points[static_cast<std::size_t>(i)] = {
        z, kNormalStep * std::exp(-z * z / 2.0) * std::numbers::inv_sqrtpi / kSqrt2,
        normal_tail(-z)};
  }
  return points;
}

double power_of(double base, int exponent) {
  double product = 1.0;
  for (int i = 0; i < exponent; ++i) product *= base;
  return product;
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

// Returns for each duration 1, if it ended, less the events expected until then. Scores of equal
// events are equal, and all of them sum to 0.
std::vector<double> log_rank_scores(const std::vector<Duration>& durations) {
  std::vector<double> scores;
  for (const Duration& one : durations) {
    double expected = 0.0;
    for (const Duration& event : durations) {
      if (event.is_censored || event.value > one.value) continue;
      expected +=
          1.0 / static_cast<double>(std::ranges::count_if(
                    durations, [&](const Duration& other) { return other.value >= event.value; }));
    }
    scores.push_back((one.is_censored ? 0.0 : 1.0) - expected);
  }
  return scores;
}

// Calls `take(sum)` for the sum of each subset of `count` of at most 22 values.
template <typename Take>
void for_each_sum(const std::vector<double>& values, std::size_t count, Take take) {
  constexpr std::size_t kHalf = 11;
  const auto sums_of = [&](std::size_t from) {
    std::vector<double> sums(std::size_t{1} << kHalf, 0.0);
    for (std::size_t mask = 1; mask < sums.size(); ++mask) {
      const auto lowest = static_cast<std::size_t>(std::countr_zero(mask));
      const double value = from + lowest < values.size() ? values[from + lowest] : 0.0;
      sums[mask] = sums[mask & (mask - 1)] + value;
    }
    return sums;
  };
  const std::vector<double> low = sums_of(0);
  const std::vector<double> high = sums_of(kHalf);
  const std::size_t end = std::size_t{1} << values.size();
  // The next larger number with as many bits. Source: HAKMEM (1972), item 175.
  for (std::size_t mask = (std::size_t{1} << count) - 1; mask < end;) {
    take(low[mask & (low.size() - 1)] + high[mask >> kHalf]);
    const std::size_t lowest = mask & (~mask + 1);
    const std::size_t ripple = mask + lowest;
    mask = ripple | (((mask ^ ripple) >> 2U) / lowest);
  }
}

}  // namespace

double mean(std::span<const double> values) {
  check(!values.empty(), "the mean of no values");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> logarithms_of(std::span<const double> values) {
  std::vector<double> all;
  for (const double value : values) all.push_back(std::log(value));
  return all;
}

std::optional<double> standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double middle = mean(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double lower_median(std::vector<double> values) {
  check(!values.empty(), "the median of no values");
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
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

StudentizedRange::StudentizedRange(int means, double degrees)
    : means_(means), scales_(scale_points(degrees)) {
  check(means >= 2 && degrees >= 1.0,
        "a studentized range needs two means and one degree of freedom");
}

double StudentizedRange::tail(double range) const {
  static const std::array<NormalPoint, kNormalPoints> kPoints = normal_points();
  // The lowest variable is at z and the others within the range above it.
  double within = 0.0;
  for (const auto& [scale, probability] : scales_) {
    for (const NormalPoint& point : kPoints) {
      const double others = point.below - normal_tail(range * scale - point.z);
      within += probability * means_ * point.probability * power_of(others, means_ - 1);
    }
  }
  return std::clamp(1.0 - within, 0.0, 1.0);
}

double StudentizedRange::quantile(double tail) const {
  // The logarithm of the tail is nearly a parabola, so few steps of the regula falsi suffice; the
  // end that stays is halved. Source: M. Dowell, P. Jarratt, BIT 11 (1971), 168-174.
  constexpr double kPrecision = 1e-6;
  constexpr double kLeastTail = 1e-12;
  const auto above = [&](double range) {
    return std::log(std::max(this->tail(range), kLeastTail) / tail);
  };
  double low = 0.0;
  double high = 4.0;
  double above_low = above(low);
  double above_high = above(high);
  while (above_high > 0.0 && high < 1e6) {
    low = std::exchange(high, 2.0 * high);
    above_low = std::exchange(above_high, above(high));
  }
  for (int side = 0; high - low > kPrecision * high;) {
    const double middle = low + (high - low) * above_low / (above_low - above_high);
    const double above_middle = above(middle);
    if (std::abs(above_middle) < kPrecision) return middle;
    if (above_middle > 0.0) {
      low = middle;
      above_low = above_middle;
      if (std::exchange(side, 1) == 1) above_high /= 2.0;
    } else {
      high = middle;
      above_high = above_middle;
      if (std::exchange(side, -1) == -1) above_low /= 2.0;
    }
  }
  return high;
}

double WelchTest::p_value(int means) const {
  if (difference == 0.0) return 1.0;
  if (standard_error == 0.0) return 0.0;
  return StudentizedRange(means, degrees).tail(kSqrt2 * std::abs(difference) / standard_error);
}

double WelchTest::reach(double level, int means) const {
  if (standard_error == 0.0) return 0.0;
  return StudentizedRange(means, degrees).quantile(level) / kSqrt2 * standard_error;
}

double WelchTest::detectable(double level, int means, double power) const {
  if (standard_error == 0.0) return 0.0;
  const double critical = reach(level, means) / standard_error;
  const auto scales = scale_points(degrees);
  const auto probability_of = [&](double noncentrality) {
    double sum = 0.0;
    for (const auto& [scale, probability] : scales) {
      sum += probability * normal_tail(critical * scale - noncentrality);
    }
    return sum;
  };
  double low = 0.0;  // in standard errors
  double high = 1.0;
  while (probability_of(high) < power && high < 1e9) high *= 2.0;
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2.0;
    (probability_of(middle) < power ? low : high) = middle;
  }
  return high * standard_error;
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

WelchTest WelchTest::with_more_values(double factor, int count) const {
  return {difference, standard_error / std::sqrt(factor),
          degrees * (factor * count - 1.0) / (count - 1.0)};
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

double least_permutation_p(int n, int m) {
  check(n > 0 && m > 0, "least_permutation_p needs values on both sides");
  const double log_ways = std::lgamma(n + m + 1.0) - std::lgamma(n + 1.0) - std::lgamma(m + 1.0);
  return std::min(1.0, 2.0 * std::exp(-log_ways));
}

LogRankTest log_rank_test(std::span<const Duration> a, std::span<const Duration> b) {
  check(!a.empty() && !b.empty(), "a log-rank test needs durations on both sides");
  std::vector<Duration> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const std::vector<double> scores = log_rank_scores(all);
  LogRankTest test{.excess = std::accumulate(scores.begin(), scores.begin() + std::ssize(a), 0.0)};
  constexpr double kRounding = 1e-9;
  const double observed = std::abs(test.excess) - kRounding;
  std::vector<double> sorted = scores;
  std::ranges::sort(sorted);
  const double lowest = std::accumulate(sorted.begin(), sorted.begin() + std::ssize(a), 0.0);
  const double highest = std::accumulate(sorted.end() - std::ssize(a), sorted.end(), 0.0);
  const double most = std::max(-lowest, highest) - kRounding;
  constexpr std::size_t kMostExact = 22;
  if (all.size() > kMostExact) {
    const double squares = std::inner_product(scores.begin(), scores.end(), scores.begin(), 0.0);
    const auto n = static_cast<double>(a.size());
    const auto m = static_cast<double>(b.size());
    const double deviation = std::sqrt(n * m * squares / ((n + m) * (n + m - 1.0)));
    if (deviation == 0.0) return test;
    test.p_value = std::min(1.0, 2.0 * normal_tail(observed / deviation));
    test.least_p = std::min(1.0, 2.0 * normal_tail(most / deviation));
    return test;
  }
  double ways = 0.0;
  double as_extreme = 0.0;
  double most_extreme = 0.0;
  for_each_sum(scores, a.size(), [&](double sum) {
    ways += 1.0;
    as_extreme += std::abs(sum) >= observed ? 1.0 : 0.0;
    most_extreme += std::abs(sum) >= most ? 1.0 : 0.0;
  });
  test.p_value = as_extreme / ways;
  test.least_p = most_extreme / ways;
  return test;
}

}  // namespace syncopate::bench
