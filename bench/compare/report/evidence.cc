#include "bench/compare/report/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Returns the row with the smallest `key(row)` among the rows that have a key.
template <typename Key>
const VariantSummary* row_with_least(const Rows& rows, Key key) {
  const VariantSummary* best = nullptr;
  for (const VariantSummary& row : rows) {
    const std::optional<double> value = key(row);
    if (!value || !std::isfinite(*value)) continue;
    if (best == nullptr || *value < *key(*best)) best = &row;
  }
  return best;
}

std::optional<double> signed_mean(const std::optional<Sample>& sample, double sign = 1.0) {
  return sample ? std::optional(sign * sample->mean) : std::nullopt;
}

// Returns the logarithms of the values; nothing if a value is not positive and so has none.
std::optional<std::vector<double>> logarithms(const std::vector<double>& values) {
  std::vector<double> all;
  for (const double value : values) {
    if (!(value > 0.0)) return std::nullopt;
    all.push_back(std::log(value));
  }
  return all;
}

// Returns by how much the mean logarithm of the times may be too large, because the target was
// reached between two evaluations. Infinite if it was reached before the first evaluation.
double slack_of(const VariantSummary& row) {
  double sum = 0.0;
  for (std::size_t i = 0; i < row.reached_seconds.size(); ++i) {
    const double seconds = row.reached_seconds[i];
    sum += std::log(seconds / std::max(0.0, seconds - row.reached_gaps[i]));
  }
  return sum / static_cast<double>(row.reached_seconds.size());
}

// Returns, for too few seeds for a confidence interval, the smallest and the largest difference
// between two runs.
Difference range_of_differences(const std::vector<double>& a, const std::vector<double>& b,
                                bool is_paired) {
  Difference range{
      mean(a) - mean(b),
      {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}};
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (is_paired && i != j) continue;
      range.interval.low = std::min(range.interval.low, a[i] - b[j]);
      range.interval.high = std::max(range.interval.high, a[i] - b[j]);
    }
  }
  return range;
}

}  // namespace

std::optional<TimeRatio> time_ratio(const VariantSummary& a, const VariantSummary& b) {
  if (!a.seconds_to_target || !b.seconds_to_target) return std::nullopt;
  const auto of_a = logarithms(a.reached_seconds);
  const auto of_b = logarithms(b.reached_seconds);
  if (!of_a || !of_b) return std::nullopt;
  const auto seeds = static_cast<int>(std::min(of_a->size(), of_b->size()));
  std::optional<Difference> apart = range_of_differences(*of_a, *of_b, a.seeds == b.seeds);
  if (seeds >= kEnoughSeeds) {
    apart = a.seeds == b.seeds ? paired_difference(*of_a, *of_b) : welch_difference(*of_a, *of_b);
  }
  return TimeRatio{.value = std::exp(apart->value),
                   .interval = {std::exp(apart->interval.low - slack_of(a)),
                                std::exp(apart->interval.high + slack_of(b))},
                   .seeds = seeds};
}

bool have_same_weights(const VariantSummary& a, const VariantSummary& b) {
  const auto is_known = [](const std::string& hash) { return !hash.empty(); };
  return !a.weights.empty() && a.weights == b.weights && std::ranges::all_of(a.weights, is_known);
}

bool are_identical(const VariantSummary& a, const VariantSummary& b) {
  return have_same_weights(a, b) && a.seconds->values == b.seconds->values &&
         a.reached_seconds == b.reached_seconds;
}

std::optional<Difference> difference(const VariantSummary& a, const VariantSummary& b,
                                     Quantity quantity) {
  const auto& of_a = a.*quantity;
  const auto& of_b = b.*quantity;
  const auto has_enough = [](const std::optional<Sample>& sample) {
    return sample && sample->values.size() >= static_cast<std::size_t>(kEnoughSeeds);
  };
  if (!has_enough(of_a) || !has_enough(of_b)) return std::nullopt;
  return welch_difference(of_a->values, of_b->values);
}

const VariantSummary* fastest(const Rows& rows) {
  return row_with_least(
      rows, [](const VariantSummary& row) { return signed_mean(row.seconds_to_target); });
}

const VariantSummary* reference(const Rows& rows) {
  const auto found =
      std::ranges::find_if(rows, [](const VariantSummary& row) { return row.done > 0; });
  return found == rows.end() ? nullptr : &*found;
}

Rows choices(const Rows& rows, const std::optional<Chance>& chance) {
  Rows done;
  Rows complete;
  for (const VariantSummary& row : rows) {
    if (row.done == 0 || row.is_at_chance(chance)) continue;
    done.push_back(row);
    if (row.is_complete()) complete.push_back(row);
  }
  return complete.empty() ? done : complete;
}

const VariantSummary* most_accurate(const Rows& rows) {
  return row_with_least(rows,
                        [](const VariantSummary& row) { return signed_mean(row.accuracy, -1.0); });
}

std::vector<const VariantSummary*> not_told_from(const Rows& rows, const VariantSummary& first,
                                                 Quantity quantity) {
  std::vector<const VariantSummary*> equals;
  for (const VariantSummary& row : rows) {
    if (&row == &first) continue;
    const auto apart = difference(row, first, quantity);
    if (apart && !apart->is_significant()) equals.push_back(&row);
  }
  return equals;
}

std::vector<const VariantSummary*> not_later_than(const Rows& rows, const VariantSummary& first) {
  std::vector<const VariantSummary*> equals;
  for (const VariantSummary& row : rows) {
    if (&row == &first || are_identical(row, first)) continue;
    const auto later = time_ratio(row, first);
    if (later && !later->is_significant()) equals.push_back(&row);
  }
  return equals;
}

std::vector<const VariantSummary*> identical_to(const Rows& rows, const VariantSummary& first) {
  std::vector<const VariantSummary*> all;
  for (const VariantSummary& row : rows) {
    if (&row != &first && row.done > 0 && are_identical(row, first)) all.push_back(&row);
  }
  return all;
}

BatchExtremes batches_at_one_rate(const Rows& rows) {
  constexpr double kApart = 1.5;
  constexpr double kSameRate = 1.05;
  BatchExtremes found;
  double lowest_rate = std::numeric_limits<double>::infinity();
  double highest_rate = 0.0;
  for (const VariantSummary& row : rows) {
    if (!row.batch()) continue;
    if (!row.learning_rate) return {};
    lowest_rate = std::min(lowest_rate, row.learning_rate->mean);
    highest_rate = std::max(highest_rate, row.learning_rate->mean);
    if (found.fewest == nullptr || *row.batch() < *found.fewest->batch()) found.fewest = &row;
    if (found.most == nullptr || *row.batch() > *found.most->batch()) found.most = &row;
  }
  const bool is_said = found.fewest != nullptr && highest_rate <= kSameRate * lowest_rate &&
                       *found.most->batch() >= kApart * *found.fewest->batch();
  return is_said ? found : BatchExtremes{};
}

std::string named(const VariantSummary& row) {
  const bool is_one_word = row.name.find_first_of(" ,") == std::string::npos;
  return is_one_word ? row.name : fmt::format("\"{}\"", row.name);
}

std::string accuracy_of(const VariantSummary& row) {
  return decimal_text(100.0 * row.accuracy->mean, 2) + " %";
}

std::string time_of(const VariantSummary& row, const Comparison& comparison) {
  return fmt::format("{}{}", short_text(row.seconds_to_target->mean),
                     comparison.has_virtual_clock ? " virtual s" : " s");
}

std::string interval_words(const TimeRatio& ratio) {
  const Interval& interval = ratio.interval;
  if (!ratio.is_bounded()) {
    return ratio.is_significant() ? "at least " + factor_text(interval.low)
                                  : "evaluations are too far apart to tell";
  }
  const std::string low = factor_text(interval.low);
  const std::string high = factor_text(interval.high);
  if (ratio.has_enough_seeds()) return fmt::format("95 % interval {} to {}", low, high);
  return fmt::format("{} to {} with the {}", low, high,
                     ratio.seeds == 1 ? "one seed" : "two seeds");
}

std::string interval_words(const Difference& difference) {
  const Interval& interval = difference.interval;
  const double low = std::min(std::abs(interval.low), std::abs(interval.high));
  const double high = std::max(std::abs(interval.low), std::abs(interval.high));
  if (low == high) return "with every seed";
  return fmt::format("95 % interval {} to {}", points_text(low), points_text(high));
}

}  // namespace syncopate::bench
