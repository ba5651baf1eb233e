#include "bench/compare/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "bench/compare/report/evidence.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/reported_faults.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Returns the comparison's conditions: "under the virtual clock, with worker 7 slowed 4x, ".
std::string setting(const Comparison& comparison) {
  const std::string faults = describe_faults(effective_faults(comparison));
  return fmt::format("{}{}", comparison.has_virtual_clock ? "under the virtual clock, " : "",
                     faults.empty() ? "" : fmt::format("with {}, ", faults));
}

// Returns words that warn of a result from few seeds: ", on the evidence of one seed" or ", on the
// evidence of two seeds"; "" if the variant ran with enough seeds.
std::string few_seeds_words(const VariantSummary& row) {
  if (row.done >= kEnoughSeeds) return "";
  return row.done == 1 ? ", on the evidence of one seed" : ", on the evidence of two seeds";
}

// Returns the names of the variants whose time to the target does not differ significantly from
// that of `first`, and whose final accuracy is not significantly lower.
std::vector<std::string> equals_of(const Rows& pool, const VariantSummary& first) {
  std::vector<std::string> equals;
  for (const VariantSummary* row : not_later_than(pool, first)) {
    const auto gain = difference(*row, first, &VariantSummary::accuracy);
    const bool has_lost = gain && gain->is_significant() && gain->value < 0.0;
    if (!has_lost) equals.push_back(named(*row));
  }
  return equals;
}

// Returns the end of a recommendation, "; A and B may be as fast" for variants A and B. `others` is
// the number of variants beside the recommended one.
std::string or_others(const std::vector<std::string>& equals, std::size_t others,
                      std::string_view what) {
  constexpr std::size_t kMostNames = 2;
  if (equals.empty()) return "";
  if (equals.size() <= kMostNames) return fmt::format("; {} may be as {}", listed(equals), what);
  if (equals.size() >= others) return fmt::format("; any of the others may be as {}", what);
  return fmt::format("; {} of the others may be as {} ({})", equals.size(), what, listed(equals));
}

// Returns " or A, identical in weights and times" if variant A trained exactly as `first` did; ""
// if there is no such variant.
std::string or_identical(const Rows& pool, const VariantSummary& first) {
  std::vector<std::string> same;
  for (const VariantSummary* row : identical_to(pool, first)) same.push_back(named(*row));
  return same.empty() ? "" : fmt::format(" or {}, identical in weights and times", listed(same));
}

std::string recommend_fastest(const Comparison& comparison, const Rows& rows, const Rows& pool,
                              const VariantSummary& first) {
  const bool is_alone = std::ranges::none_of(rows, [&](const VariantSummary& row) {
    return row.seconds_to_target && row.name != first.name;
  });
  return fmt::format("Use {}{}{}: {}it {}reached {} {}, in {}{}", named(first),
                     or_identical(pool, first), few_seeds_words(first), setting(comparison),
                     is_alone ? "alone " : "", percent_text(*comparison.target_accuracy),
                     is_alone ? "with every seed" : "soonest", time_of(first, comparison),
                     or_others(equals_of(pool, first), pool.size() - 1, "fast"));
}

std::string recommend_most_accurate(const Comparison& comparison, const Rows& pool,
                                    const VariantSummary& best) {
  std::vector<std::string> equals;
  for (const VariantSummary* row : not_told_from(pool, best, &VariantSummary::accuracy)) {
    equals.push_back(named(*row));
  }
  std::string unreached;
  if (comparison.target_accuracy) {
    unreached =
        fmt::format(", and none reached {} with every seed, which a larger budget may change",
                    percent_text(*comparison.target_accuracy));
  }
  return fmt::format("Use {}{}, if one must be chosen: {}it ended with the best accuracy, {}{}{}",
                     named(best), few_seeds_words(best), setting(comparison), accuracy_of(best),
                     unreached, or_others(equals, pool.size() - 1, "good"));
}

std::string why_nothing(const Comparison& comparison, const Rows& rows) {
  if (reference(rows) == nullptr) return "Nothing is recommended: no run succeeded";
  if (!comparison.chance) return "Nothing is recommended: no final accuracy is a number";
  const Chance& chance = *comparison.chance;
  return fmt::format(
      "Nothing is recommended: no variant ended above {}, which guessing may reach (the most "
      "frequent of {} classes is {} of {} test samples, plus three standard errors)",
      percent_text(chance.limit()), chance.classes, percent_text(chance.share),
      decimal_text(static_cast<double>(chance.test_samples), 0));
}

struct Recommendation {
  const VariantSummary* row = nullptr;  // null: no row can be recommended
  std::string sentence;                 // the recommendation without its full stop
};

Recommendation recommend(const Comparison& comparison, const Rows& rows, const Rows& pool) {
  if (pool.empty()) return {.sentence = why_nothing(comparison, rows)};
  if (rows.size() < 2) {
    return {.sentence = fmt::format("Nothing is recommended: there is nothing to compare {} with",
                                    named(rows.front()))};
  }
  if (const VariantSummary* first = fastest(pool)) {
    return {.row = first, .sentence = recommend_fastest(comparison, rows, pool, *first)};
  }
  const VariantSummary* best = most_accurate(pool);
  return {.row = best, .sentence = recommend_most_accurate(comparison, pool, *best)};
}

// If the recommended row runs on one machine only, names the row to use over several machines.
std::optional<std::string> best_distributed(const Comparison& comparison, const Rows& pool,
                                            const VariantSummary& taken) {
  if (taken.is_distributed.value_or(true)) return std::nullopt;
  Rows distributed;
  for (const VariantSummary& row : pool) {
    if (row.is_distributed.value_or(false) && row.workers > 1) distributed.push_back(row);
  }
  if (distributed.empty()) return std::nullopt;
  const VariantSummary* best = fastest(distributed);
  if (best == nullptr) {
    best = most_accurate(distributed);
    return fmt::format(
        "Over several machines, use {}: it had the best accuracy of those that can span them, {}",
        named(*best), accuracy_of(*best));
  }
  const auto later = time_ratio(*best, taken);
  const std::string factor =
      later && later->is_significant()
          ? fmt::format(", {} as long as {}", factor_text(later->value), named(taken))
          : "";
  return fmt::format(
      "Over several machines, use {}: of those that can span them it reached {} soonest here, in "
      "{}{}{}",
      named(*best), percent_text(*comparison.target_accuracy), time_of(*best, comparison), factor,
      or_others(equals_of(distributed, *best), distributed.size() - 1, "fast"));
}

// Names the row that ended certainly more accurate than the recommended row.
std::optional<std::string> more_accurate(const Comparison& comparison, const Rows& pool,
                                         const VariantSummary& taken) {
  if (!comparison.target_accuracy || !taken.seconds_to_target) return std::nullopt;
  const VariantSummary* best = most_accurate(pool);
  const auto gain = difference(*best, taken, &VariantSummary::accuracy);
  if (!gain || !gain->is_significant() || gain->value < 0.0) return std::nullopt;
  return fmt::format(
      "Where the final accuracy counts more than time, use {}: {} points more than {} ({})",
      named(*best), points_text(gain->value), named(taken), interval_words(*gain));
}

std::string_view kind_words(Kind kind) {
  return kind == Kind::kSynchronous ? "synchronous" : "asynchronous";
}

Rows of_kind(const Rows& rows, Kind kind) {
  Rows found;
  for (const VariantSummary& row : rows) {
    if (row.kind == kind) found.push_back(row);
  }
  return found;
}

// Returns the fastest row, or the most accurate row if none reached the target.
const VariantSummary& best_of(const Rows& rows) {
  const VariantSummary* first = fastest(rows);
  return first != nullptr ? *first : *most_accurate(rows);
}

// Writes the sentence that compares the best synchronous with the best asynchronous variant.
class KindSentence {
 public:
  KindSentence(const Comparison& comparison, const VariantSummary& a, const VariantSummary& b)
      : comparison_(comparison), a_(a), b_(b), seeds_(std::min(a.done, b.done)) {}

  std::string write() const {
    if (const auto ratio = time_ratio(a_, b_)) return by_time(*ratio);
    if (a_.seconds_to_target.has_value() != b_.seconds_to_target.has_value()) return by_reaching();
    return by_accuracy();
  }

 private:
  std::string in_time_to_target() const {
    return "in time to " + percent_text(*comparison_.target_accuracy);
  }

  // Returns the beginning of a sentence: which of synchronous and asynchronous training beats the
  // other, and how certain this is.
  std::string claim(bool is_significant, bool has_enough_seeds, const VariantSummary& better,
                    const VariantSummary& worse, std::string_view in_what) const {
    std::string beats = fmt::format("{} beats {} {} here", kind_words(better.kind),
                                    kind_words(worse.kind), in_what);
    if (!has_enough_seeds) {
      return fmt::format(
          "{} too few to {}: ", seeds_ == 1 ? "One seed is" : "Two seeds are",
          is_significant
              ? "be sure that " + beats
              : fmt::format("tell whether synchronous or asynchronous is better {}", in_what));
    }
    if (!is_significant) {
      return fmt::format("Synchronous or asynchronous makes no significant difference {} here: ",
                         in_what);
    }
    beats[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(beats[0])));
    return beats + ": ";
  }

  std::string by_time(const TimeRatio& ratio) const {
    const VariantSummary& first = ratio.value < 1.0 ? a_ : b_;
    const VariantSummary& second = ratio.value < 1.0 ? b_ : a_;
    const TimeRatio later = *time_ratio(second, first);
    return fmt::format(
        "{}{} took {}, {} {} as long ({}); {}",
        claim(later.is_significant(), later.has_enough_seeds(), first, second, in_time_to_target()),
        named(first), time_of(first, comparison_), named(second), factor_text(later.value),
        interval_words(later), speed_words(first, second));
  }

  std::string by_reaching() const {
    const VariantSummary& first = a_.seconds_to_target ? a_ : b_;
    const VariantSummary& second = a_.seconds_to_target ? b_ : a_;
    return fmt::format(
        "{}{} took {}, and {}, the best that was {}, did not get there with every seed; {}",
        claim(true, seeds_ >= kEnoughSeeds, first, second, in_time_to_target()), named(first),
        time_of(first, comparison_), named(second), kind_words(second.kind),
        speed_words(first, second));
  }

  std::string by_accuracy() const {
    const VariantSummary& first = a_.accuracy->mean > b_.accuracy->mean ? a_ : b_;
    const VariantSummary& second = a_.accuracy->mean > b_.accuracy->mean ? b_ : a_;
    const auto gain = difference(first, second, &VariantSummary::accuracy);
    const bool has_enough_seeds = seeds_ >= kEnoughSeeds;
    const bool is_told = has_enough_seeds && gain && gain->is_significant();
    return fmt::format("{}{} ended at {}, {} at {}{}; {} had {}",
                       claim(is_told, has_enough_seeds, first, second, "in final accuracy"),
                       named(first), accuracy_of(first), named(second), accuracy_of(second),
                       is_told ? fmt::format(" ({} points less)", interval_words(*gain)) : "",
                       named(first), samples_words(first, second));
  }

  static std::string samples_words(const VariantSummary& first, const VariantSummary& second) {
    const std::string factor =
        factor_text(first.samples_per_second->mean / second.samples_per_second->mean);
    return factor == factor_text(1.0) ? "as many samples/s" : factor + " the samples/s";
  }

  // Compares throughput and final accuracy of two variants in words: "A had 3.9x the samples/s and
  // 1.40 points less final accuracy (95 % interval ...)".
  static std::string speed_words(const VariantSummary& first, const VariantSummary& second) {
    const double gain = first.accuracy->mean - second.accuracy->mean;
    const std::string size = points_text(std::abs(gain));
    const std::string begin =
        fmt::format("{} had {} and ", named(first), samples_words(first, second));
    if (size == points_text(0.0)) return begin + "the same final accuracy";
    const auto sure = difference(first, second, &VariantSummary::accuracy);
    return fmt::format("{}{} points {} final accuracy ({})", begin, size,
                       gain < 0.0 ? "less" : "more",
                       !sure                    ? "too few seeds to tell"
                       : sure->is_significant() ? interval_words(*sure)
                                                : "not significant");
  }

  const Comparison& comparison_;
  const VariantSummary& a_;
  const VariantSummary& b_;
  const int seeds_;
};

// Compares synchronous with asynchronous training; empty unless variants of both were compared.
std::optional<std::string> synchronous_or_asynchronous(const Comparison& comparison,
                                                       const Rows& rows, const Rows& pool) {
  const bool has_both =
      !of_kind(rows, Kind::kSynchronous).empty() && !of_kind(rows, Kind::kAsynchronous).empty();
  if (!has_both || pool.empty()) return std::nullopt;
  const Rows synchronous = of_kind(pool, Kind::kSynchronous);
  const Rows asynchronous = of_kind(pool, Kind::kAsynchronous);
  if (synchronous.empty() && asynchronous.empty()) return std::nullopt;
  if (synchronous.empty() || asynchronous.empty()) {
    const Kind missing = synchronous.empty() ? Kind::kSynchronous : Kind::kAsynchronous;
    return fmt::format(
        "Synchronous and asynchronous cannot be compared: no {} variant succeeded with every seed "
        "and was better than guessing",
        kind_words(missing));
  }
  return KindSentence(comparison, best_of(synchronous), best_of(asynchronous)).write();
}

}  // namespace

Verdict verdict(const Comparison& comparison) {
  const Rows rows = summarise(comparison);
  const Rows pool = choices(rows, comparison.chance);
  Verdict verdict{.answer = {}, .remarks = remarks(comparison, rows)};
  const auto add = [&](const std::optional<std::string>& sentence) {
    if (sentence) verdict.answer.push_back(*sentence + ".");
  };
  const Recommendation recommendation = recommend(comparison, rows, pool);
  if (recommendation.row != nullptr) verdict.recommended = recommendation.row->label;
  add(recommendation.sentence);
  add(synchronous_or_asynchronous(comparison, rows, pool));
  if (recommendation.row != nullptr) {
    add(best_distributed(comparison, pool, *recommendation.row));
    add(more_accurate(comparison, pool, *recommendation.row));
  }
  const auto use = cpu_use(comparison);
  if (use && use->is_shared && !pool.empty()) {
    add(use->words + ": with a CPU for each thread, times and their order may differ");
  }
  return verdict;
}

std::string paragraph_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : " ") + sentence;
  return text;
}

}  // namespace syncopate::bench
