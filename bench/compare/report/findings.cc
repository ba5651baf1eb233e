#include "bench/compare/report/findings.h"

#include <algorithm>
#include <cmath>

namespace syncopate::bench {
namespace {

// The row with the least `key(row)` among those that have one.
template <typename Key>
const VariantSummary* least(const Rows& rows, Key key) {
  const VariantSummary* best = nullptr;
  for (const VariantSummary& row : rows) {
    const std::optional<double> value = key(row);
    if (!value || !std::isfinite(*value)) continue;
    if (best == nullptr || *value < *key(*best)) best = &row;
  }
  return best;
}

std::optional<double> mean_of(const std::optional<Sample>& sample, double sign = 1.0) {
  return sample ? std::optional(sign * sample->mean) : std::nullopt;
}

}  // namespace

std::optional<Difference> difference(const VariantSummary& a, const VariantSummary& b,
                                     Quantity quantity) {
  const auto& of_a = a.*quantity;
  const auto& of_b = b.*quantity;
  return of_a && of_b ? welch_difference(of_a->values, of_b->values) : std::nullopt;
}

const VariantSummary* fastest(const Rows& rows) {
  return least(rows, [](const VariantSummary& row) { return mean_of(row.seconds_to_target); });
}

const VariantSummary* runner_up(const Rows& rows, const VariantSummary& first) {
  return least(rows, [&](const VariantSummary& row) {
    return &row == &first ? std::nullopt : mean_of(row.seconds_to_target);
  });
}

const VariantSummary* reference(const Rows& rows) {
  const auto found =
      std::ranges::find_if(rows, [](const VariantSummary& row) { return row.done > 0; });
  return found == rows.end() ? nullptr : &*found;
}

const VariantSummary* most_accurate(const Rows& rows) {
  return least(rows, [](const VariantSummary& row) { return mean_of(row.accuracy, -1.0); });
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

int fewest_seeds(const Rows& rows) {
  int fewest = 0;
  for (const VariantSummary& row : rows) {
    if (row.done > 0 && (fewest == 0 || row.done < fewest)) fewest = row.done;
  }
  return fewest;
}

}  // namespace syncopate::bench
