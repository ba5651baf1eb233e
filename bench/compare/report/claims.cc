#include "bench/compare/report/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPower = 0.8;  // of PairDifference::detectable

// A pair of rows before Holm's procedure has given it a level.
struct OpenPair {
  PairDifference result;
  WelchTest test;
  double p_value = 1.0;
  double welch_p_value = 1.0;  // of Welch's test alone
};

std::vector<double> logarithms_of(const std::vector<double>& values) {
  std::vector<double> all;
  for (const double value : values) all.push_back(std::log(value));
  return all;
}

// Returns the variance of the mean logarithm of the times that stems from evaluations, between two
// of which the target was reached: that of a uniform distribution. It is a systematic error,
// because all seeds may reach the target at one point between two evaluations. Infinite for the
// first evaluation.
double evaluation_variance(const VariantSummary& row) {
  double sum = 0.0;
  for (std::size_t i = 0; i < row.reached_seconds.size(); ++i) {
    const double seconds = row.reached_seconds[i];
    const double before = std::max(0.0, seconds - row.reached_gaps[i]);
    // A gap that is all of the time but for rounding is the first one.
    sum += before < 1e-9 * seconds ? kInfinity : std::log(seconds / before);
  }
  const double width = sum / static_cast<double>(row.reached_seconds.size());
  return width * width / 12.0;
}

bool reached_at_same_samples(const VariantSummary& a, const VariantSummary& b) {
  return have_same_weights(a, b) && a.samples_to_target && b.samples_to_target &&
         a.samples_to_target->values == b.samples_to_target->values;
}

std::optional<OpenPair> accuracy_pair(const VariantSummary& a, const VariantSummary& b) {
  if (!has_claimable_accuracy(a) || !has_claimable_accuracy(b)) return std::nullopt;
  const auto test = welch_test(a.accuracy->values, b.accuracy->values);
  if (!test) return std::nullopt;
  OpenPair pair{.result = {.measure = Measure::kAccuracy, .value = test->difference},
                .test = *test,
                .p_value = test->p_value()};
  // Values without any spread, such as those of a small test set, are no proof: p is at least that
  // of an exact test.
  if (test->standard_error == 0.0) {
    pair.p_value = std::max(pair.p_value, least_permutation_p(a.done, b.done));
    if (test->difference != 0.0) pair.test.standard_error = kInfinity;
  }
  pair.welch_p_value = pair.p_value;
  return pair;
}

std::optional<OpenPair> time_pair(const VariantSummary& a, const VariantSummary& b) {
  if (!has_claimable_time(a) || !has_claimable_time(b)) return std::nullopt;
  const auto test = welch_test(logarithms_of(a.reached_seconds), logarithms_of(b.reached_seconds));
  if (!test) return std::nullopt;
  // Rows with equal weights pass the target at the same sample, somewhere between the same
  // evaluations, which cancels in the ratio of their times.
  const double variance =
      reached_at_same_samples(a, b) ? 0.0 : evaluation_variance(a) + evaluation_variance(b);
  OpenPair pair{.result = {.measure = Measure::kTime, .value = test->difference},
                .test = test->with_systematic_error(variance)};
  const double all = pair.test.standard_error * pair.test.standard_error;
  if (variance > 0.0) pair.result.evaluation_share = std::isfinite(all) ? variance / all : 1.0;
  constexpr double kRounding = 1e-9;  // evaluations at equal times differ by rounding
  if (std::isfinite(pair.test.standard_error) && std::abs(test->difference) > kRounding) {
    pair.p_value = pair.test.p_value();
    pair.welch_p_value = test->p_value();
  }
  return pair;
}

PairDifference closed(const OpenPair& pair, const HolmStep& step) {
  PairDifference result = pair.result;
  result.level = step.level;
  result.adjusted_p = step.adjusted_p;
  if (!std::isfinite(pair.test.standard_error)) {
    result.interval = {-kInfinity, kInfinity};
    result.detectable = kInfinity;
    return result;
  }
  const double reach = pair.test.reach(step.level);
  result.interval = {result.value - reach, result.value + reach};
  result.detectable = pair.test.detectable(step.level, kPower);
  return result;
}

}  // namespace

bool PairDifference::is_equal() const noexcept {
  const double margin = measure == Measure::kTime ? std::log(kEqualTime) : kEqualAccuracy;
  return -margin <= interval.low && interval.high <= margin;
}

bool have_same_weights(const VariantSummary& a, const VariantSummary& b) {
  const auto is_known = [](const std::string& hash) { return !hash.empty(); };
  return !a.weights.empty() && a.weights == b.weights && std::ranges::all_of(a.weights, is_known);
}

bool has_claimable_accuracy(const VariantSummary& row) {
  return row.accuracy && row.disturbed == 0 && row.failed == 0 && row.done >= kSeedsForAccuracy &&
         row.not_numbers() == 0;
}

bool has_claimable_time(const VariantSummary& row) {
  const auto is_positive = [](double seconds) { return seconds > 0.0; };
  return row.seconds_to_target && row.has_comparable_times && row.disturbed == 0 &&
         row.reached >= kSeedsForTime && std::ranges::all_of(row.reached_seconds, is_positive);
}

Claims::Claims(const Rows& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::size_t twin = 0;
    // A row that is not tested cannot stand for one that is.
    const auto is_twin = [&](const VariantSummary& other) {
      return have_same_weights(other, rows[i]) &&
             has_claimable_accuracy(other) == has_claimable_accuracy(rows[i]);
    };
    while (twin < i && !is_twin(rows[twin])) ++twin;
    twins_.push_back(twin);
  }
  std::vector<OpenPair> open;
  const auto add = [&](std::optional<OpenPair> pair, std::size_t a, std::size_t b) {
    if (!pair) return;
    pair->result.a = a;
    pair->result.b = b;
    pair->result.seeds = std::min(rows[a].done, rows[b].done);
    open.push_back(*pair);
  };
  for (std::size_t a = 0; a < rows.size(); ++a) {
    for (std::size_t b = a + 1; b < rows.size(); ++b) {
      // Rows with equal weights have equal accuracies, so one of them stands for all.
      if (twins_[a] == a && twins_[b] == b) add(accuracy_pair(rows[a], rows[b]), a, b);
      add(time_pair(rows[a], rows[b]), a, b);
    }
  }
  std::vector<double> p_values;
  std::vector<double> welch_p_values;
  for (const OpenPair& pair : open) {
    p_values.push_back(pair.p_value);
    welch_p_values.push_back(pair.welch_p_value);
  }
  const std::vector<HolmStep> steps = holm(p_values, kFamilyLevel);
  const std::vector<HolmStep> welch_steps = holm(welch_p_values, kFamilyLevel);
  for (std::size_t i = 0; i < open.size(); ++i) {
    pairs_.push_back(closed(open[i], steps[i]));
    pairs_.back().welch_adjusted_p = welch_steps[i].adjusted_p;
  }
}

std::optional<PairDifference> Claims::difference(std::size_t a, std::size_t b,
                                                 Measure measure) const {
  const std::size_t first = measure == Measure::kAccuracy ? twins_[a] : a;
  const std::size_t second = measure == Measure::kAccuracy ? twins_[b] : b;
  for (const PairDifference& pair : pairs_) {
    if (pair.measure != measure) continue;
    if (pair.a == first && pair.b == second) return pair;
    if (pair.a != second || pair.b != first) continue;
    PairDifference turned = pair;
    turned.a = a;
    turned.b = b;
    turned.value = -pair.value;
    turned.interval = {-pair.interval.high, -pair.interval.low};
    return turned;
  }
  return std::nullopt;
}

bool Claims::is_sooner(std::size_t a, std::size_t b) const {
  const auto time = difference(a, b, Measure::kTime);
  return time && time->is_claimed() && time->value < 0.0;
}

bool Claims::is_more_accurate(std::size_t a, std::size_t b) const {
  const auto accuracy = difference(a, b, Measure::kAccuracy);
  return accuracy && accuracy->is_claimed() && accuracy->value > 0.0;
}

std::string interval_words(const PairDifference& difference) {
  const Interval& interval = difference.interval;
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return "";
  if (difference.measure == Measure::kTime) {
    return fmt::format("{} to {}", factor_text(std::exp(interval.low)),
                       factor_text(std::exp(interval.high)));
  }
  if (interval.contains(0.0)) {
    return fmt::format("-{} to {}", points_text(-interval.low), points_text(interval.high));
  }
  const double low = std::abs(interval.low);
  const double high = std::abs(interval.high);
  return fmt::format("{} to {}", points_text(std::min(low, high)),
                     points_text(std::max(low, high)));
}

std::string in_parentheses(const PairDifference& difference) {
  const bool is_time = difference.measure == Measure::kTime;
  const std::string words = interval_words(difference);
  if (words.empty()) return is_time ? " (geometric means)" : "";
  return fmt::format(" ({}{})", is_time ? "geometric means, " : "", words);
}

}  // namespace syncopate::bench
