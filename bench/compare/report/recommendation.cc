#include "bench/compare/report/recommendation.h"

#include <algorithm>

#include "bench/compare/report/late_trouble.h"
#include "bench/compare/report/text.h"
#include "bench/compare/report/wording.h"

namespace syncopate::bench {
namespace {

constexpr std::size_t kMostNames = 2;  // in a sentence for somebody in a hurry

// Under which conditions: "under the virtual clock, with worker 7 slowed 4x, ".
std::string setting(const Comparison& comparison) {
  std::string words;
  if (comparison.has_virtual_clock) words = "under the virtual clock, ";
  const std::string trouble = trouble_words(felt_trouble(comparison));
  return trouble.empty() ? words : words + "with " + trouble + ", ";
}

// ", on the evidence of one seed".
std::string evidence(const VariantSummary& row) {
  if (row.done >= kEnoughSeeds) return "";
  return ", on the evidence of " + std::string(row.done == 1 ? "one seed" : "two seeds");
}

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

// "; A and B may be as fast", of `others` in all.
std::string or_others(const std::vector<std::string>& equals, std::size_t others,
                      const std::string& what) {
  if (equals.empty()) return "";
  if (equals.size() <= kMostNames) return "; " + listed(equals) + " may be as " + what;
  if (equals.size() >= others) return "; any of the others may be as " + what;
  return "; " + std::to_string(equals.size()) + " of the others may be as " + what + " (" +
         listed(equals) + ")";
}

std::string or_identical(const Rows& pool, const VariantSummary& first) {
  std::vector<std::string> same;
  for (const VariantSummary* row : identical_to(pool, first)) same.push_back(named(*row));
  if (same.empty()) return "";
  return " or " + listed(same) + ", identical in weights and times";
}

std::string by_time(const Comparison& comparison, const Rows& rows, const Rows& pool,
                    const VariantSummary& first) {
  const std::string same = or_identical(pool, first);
  const bool is_alone = std::ranges::none_of(rows, [&](const VariantSummary& row) {
    return row.seconds_to_target && row.name != first.name;
  });
  return "Use " + named(first) + same + evidence(first) + ": " + setting(comparison) + "it " +
         (is_alone ? "alone reached " : "reached ") + percent_text(*comparison.target_accuracy) +
         (is_alone ? " with every seed, in " : " soonest, in ") + time_of(first, comparison) +
         or_others(equals_of(pool, first), pool.size() - 1, "fast");
}

std::string by_accuracy(const Comparison& comparison, const Rows& pool,
                        const VariantSummary& best) {
  std::vector<std::string> equals;
  for (const VariantSummary* row : not_told_from(pool, best, &VariantSummary::accuracy)) {
    equals.push_back(named(*row));
  }
  std::string sentence = "Use " + named(best) + evidence(best) +
                         ", if one must be chosen: " + setting(comparison) +
                         "it ended with the best accuracy, " + accuracy_of(best);
  if (comparison.target_accuracy) {
    sentence += ", and none reached " + percent_text(*comparison.target_accuracy) +
                " with every seed, which a larger budget may change";
  }
  return sentence + or_others(equals, pool.size() - 1, "good");
}

std::string why_nothing(const Comparison& comparison, const Rows& rows) {
  if (reference(rows) == nullptr) return "Nothing is recommended: no run has come to a good end";
  if (!comparison.chance) return "Nothing is recommended: no final accuracy is a number";
  const Chance& chance = *comparison.chance;
  return "Nothing is recommended: no variant ended above " + percent_text(chance.limit()) +
         ", which guessing may reach (the most frequent of " + std::to_string(chance.classes) +
         " classes is " + percent_text(chance.share) + " of " +
         decimal_text(static_cast<double>(chance.test_samples), 0) +
         " test samples, and three standard errors)";
}

}  // namespace

Recommendation recommend(const Comparison& comparison, const Rows& rows, const Rows& pool) {
  if (pool.empty()) return {.sentence = why_nothing(comparison, rows)};
  if (rows.size() < 2) {
    return {.sentence = "Nothing is recommended: there is nothing to compare " +
                        named(rows.front()) + " with"};
  }
  if (const VariantSummary* first = fastest(pool)) {
    return {.row = first, .sentence = by_time(comparison, rows, pool, *first)};
  }
  const VariantSummary* best = most_accurate(pool);
  return {.row = best, .sentence = by_accuracy(comparison, pool, *best)};
}

std::optional<std::string> best_distributed(const Comparison& comparison, const Rows& pool,
                                            const VariantSummary& taken) {
  if (taken.is_distributed.value_or(true)) return std::nullopt;
  Rows distributed;
  for (const VariantSummary& row : pool) {
    if (row.is_distributed.value_or(false) && row.workers > 1) distributed.push_back(row);
  }
  if (distributed.empty()) return std::nullopt;
  const std::string begin = "Over several machines, use ";
  const VariantSummary* best = fastest(distributed);
  if (best == nullptr) {
    best = most_accurate(distributed);
    return begin + named(*best) + ": it had the best accuracy of those that can span them, " +
           accuracy_of(*best);
  }
  std::string sentence = begin + named(*best) + ": of those that can span them it reached " +
                         percent_text(*comparison.target_accuracy) + " soonest here, in " +
                         time_of(*best, comparison);
  const auto later = time_ratio(*best, taken);
  if (later && later->is_significant()) {
    sentence += ", " + factor_text(later->value) + " as long as " + named(taken);
  }
  return sentence + or_others(equals_of(distributed, *best), distributed.size() - 1, "fast");
}

std::optional<std::string> more_accurate(const Comparison& comparison, const Rows& pool,
                                         const VariantSummary& taken) {
  if (!comparison.target_accuracy || !taken.seconds_to_target) return std::nullopt;
  const VariantSummary* best = most_accurate(pool);
  const auto gain = difference(*best, taken, &VariantSummary::accuracy);
  if (!gain || !gain->is_significant() || gain->value < 0.0) return std::nullopt;
  return "Where the final accuracy counts more than time, use " + named(*best) + ": " +
         points_text(gain->value) + " points more than " + named(taken) + " (" +
         interval_words(*gain) + ")";
}

}  // namespace syncopate::bench
