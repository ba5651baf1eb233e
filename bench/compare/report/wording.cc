#include "bench/compare/report/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/plots/text.h"

namespace syncopate::bench {

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
