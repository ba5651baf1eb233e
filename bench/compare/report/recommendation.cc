#include "bench/compare/report/recommendation.h"

#include "bench/compare/report/text.h"
#include "bench/compare/report/wording.h"

namespace syncopate::bench {
namespace {

// Those that may be as fast as the first, unless they end with less accuracy for certain.
std::vector<std::string> equals_of(const Rows& pool, const VariantSummary& first) {
  std::vector<std::string> equals;
  for (const VariantSummary* row : not_later_than(pool, first)) {
    const auto gain = difference(*row, first, &VariantSummary::accuracy);
    const bool has_lost = gain && gain->is_significant() && gain->value < 0.0;
    if (!has_lost) equals.push_back(named(*row));
  }
  return equals;
}

std::string by_time(const Rows& pool, const VariantSummary& first, const std::string& target) {
  std::string sentence =
      "Recommended" + std::string(first.done == 1 ? ", on the evidence of one seed, is " : " is ") +
      named(first) + ", the soonest at " + target;
  std::vector<std::string> same;
  for (const VariantSummary* row : identical_to(pool, first)) same.push_back(named(*row));
  if (!same.empty()) {
    sentence += ", or " + listed(same) + ", identical in " + (same.size() == 1 ? "its" : "their") +
                " weights and times";
  }
  const std::vector<std::string> equals = equals_of(pool, first);
  if (!equals.empty()) {
    sentence += "; " + listed(equals) + " may be as fast for all these runs tell";
  }
  const VariantSummary* best = most_accurate(pool);
  const auto gain =
      best == nullptr ? std::nullopt : difference(*best, first, &VariantSummary::accuracy);
  if (gain && gain->is_significant()) {
    sentence += "; where the final accuracy counts more than time, " + named(*best) + ", " +
                points_text(gain->value) + " points better";
  }
  return sentence;
}

std::string by_accuracy(const Rows& pool, const std::optional<double>& target) {
  const VariantSummary* best = most_accurate(pool);
  if (best == nullptr) return "Nothing is recommended: no final accuracy is a number";
  std::string sentence = "By final accuracy alone the choice would be " + named(*best) + " (" +
                         accuracy_of(*best) + ")";
  std::vector<std::string> equals;
  for (const VariantSummary* row : not_told_from(pool, *best, &VariantSummary::accuracy)) {
    equals.push_back(named(*row));
  }
  if (!equals.empty()) {
    sentence += ", though " + listed(equals) + " may be as good for all these runs tell";
  }
  if (target) sentence += "; a larger budget may show who reaches " + percent_text(*target);
  return sentence;
}

}  // namespace

std::string recommendation(const Comparison& comparison, const Rows& rows) {
  if (rows.size() < 2) return "There is nothing to compare it with, so nothing is recommended";
  Rows complete;
  for (const VariantSummary& row : rows) {
    if (row.is_complete()) complete.push_back(row);
  }
  const Rows& pool = complete.empty() ? rows : complete;
  const VariantSummary* first = fastest(pool);
  if (first == nullptr) return by_accuracy(pool, comparison.target_accuracy);
  return by_time(pool, *first, percent_text(*comparison.target_accuracy));
}

}  // namespace syncopate::bench
