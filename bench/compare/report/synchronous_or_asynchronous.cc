#include "bench/compare/report/synchronous_or_asynchronous.h"

#include <algorithm>
#include <cmath>

#include "bench/compare/report/text.h"
#include "bench/compare/report/wording.h"

namespace syncopate::bench {
namespace {

std::string kind_words(Kind kind) {
  return kind == Kind::kSynchronous ? "synchronous" : "asynchronous";
}

Rows of_kind(const Rows& rows, Kind kind) {
  Rows found;
  for (const VariantSummary& row : rows) {
    if (row.kind == kind) found.push_back(row);
  }
  return found;
}

// By time where one has one.
const VariantSummary* best_of(const Rows& rows) {
  const VariantSummary* first = fastest(rows);
  return first != nullptr ? first : most_accurate(rows);
}

// How sure it is which of two is better.
enum class Evidence { kSure, kFewSeeds, kNone };

Evidence evidence_of(bool is_significant, bool has_enough_seeds) {
  if (!has_enough_seeds) return Evidence::kFewSeeds;
  return is_significant ? Evidence::kSure : Evidence::kNone;
}

class Sentence {
 public:
  Sentence(const Comparison& comparison, const VariantSummary& a, const VariantSummary& b)
      : comparison_(comparison), a_(a), b_(b), seeds_(std::min(a.done, b.done)) {}

  std::string write() {
    if (const auto ratio = time_ratio(a_, b_)) return by_time(*ratio);
    if (a_.seconds_to_target.has_value() != b_.seconds_to_target.has_value()) return by_reaching();
    return by_accuracy();
  }

 private:
  std::string target() const { return percent_text(*comparison_.target_accuracy); }

  // What the evidence says of the kinds, `better` being the one that was ahead.
  std::string claim(Evidence evidence, bool is_significant, const VariantSummary& better,
                    const VariantSummary& worse, const std::string& in_what) const {
    if (evidence == Evidence::kNone) {
      return "Synchronous or asynchronous makes no significant difference " + in_what + " here: ";
    }
    const std::string beats =
        kind_words(better.kind) + " beats " + kind_words(worse.kind) + " " + in_what + " here";
    if (evidence == Evidence::kSure) {
      std::string words = beats;
      words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
      return words + ": ";
    }
    const std::string few = few_seeds_words(seeds_) + " too few to ";
    return few +
           (is_significant ? "be sure that " + beats
                           : "tell whether synchronous or asynchronous is better " + in_what) +
           ": ";
  }

  std::string by_time(const TimeRatio& ratio) const {
    const VariantSummary& first = ratio.value < 1.0 ? a_ : b_;
    const VariantSummary& second = ratio.value < 1.0 ? b_ : a_;
    const TimeRatio later = *time_ratio(second, first);
    const Evidence evidence = evidence_of(later.is_significant(), later.has_enough_seeds());
    return claim(evidence, later.is_significant(), first, second, "in time to " + target()) +
           named(first) + " took " + time_of(first, comparison_) + ", " + named(second) + " " +
           factor_text(later.value) + " as long (" + interval_words(later) + "); " + named(first) +
           " had " + samples_words(first, second) + " and " + accuracy_words(first, second);
  }

  std::string by_reaching() const {
    const VariantSummary& first = a_.seconds_to_target ? a_ : b_;
    const VariantSummary& second = a_.seconds_to_target ? b_ : a_;
    return claim(evidence_of(true, seeds_ >= kEnoughSeeds), true, first, second,
                 "in time to " + target()) +
           named(first) + " took " + time_of(first, comparison_) + ", and " + named(second) +
           ", the best that was " + kind_words(second.kind) +
           ", did not get there with every seed; " + named(first) + " had " +
           samples_words(first, second) + " and " + accuracy_words(first, second);
  }

  std::string by_accuracy() const {
    const VariantSummary& first = a_.accuracy->mean > b_.accuracy->mean ? a_ : b_;
    const VariantSummary& second = a_.accuracy->mean > b_.accuracy->mean ? b_ : a_;
    const auto gain = difference(first, second, &VariantSummary::accuracy);
    const bool is_significant = gain && gain->is_significant();
    const bool is_told = seeds_ < kEnoughSeeds ? false : is_significant;
    return claim(evidence_of(is_significant, seeds_ >= kEnoughSeeds), is_told, first, second,
                 "in final accuracy") +
           named(first) + " ended at " + accuracy_of(first) + ", " + named(second) + " at " +
           accuracy_of(second) + (is_told ? " (" + interval_words(*gain) + " points less)" : "") +
           "; " + named(first) + " had " + samples_words(first, second);
  }

  static std::string samples_words(const VariantSummary& first, const VariantSummary& second) {
    const std::string factor =
        factor_text(first.samples_per_second->mean / second.samples_per_second->mean);
    return factor == factor_text(1.0) ? "as many samples/s" : factor + " the samples/s";
  }

  static std::string accuracy_words(const VariantSummary& first, const VariantSummary& second) {
    const double gain = first.accuracy->mean - second.accuracy->mean;
    const std::string size = points_text(std::abs(gain));
    if (size == points_text(0.0)) return "the same final accuracy";
    const auto sure = difference(first, second, &VariantSummary::accuracy);
    return size + " points " + (gain < 0.0 ? "less" : "more") + " final accuracy (" +
           (!sure                    ? "too few seeds to tell"
            : sure->is_significant() ? interval_words(*sure)
                                     : "not significant") +
           ")";
  }

  const Comparison& comparison_;
  const VariantSummary& a_;
  const VariantSummary& b_;
  const int seeds_;
};

}  // namespace

std::optional<std::string> synchronous_or_asynchronous(const Comparison& comparison,
                                                       const Rows& rows, const Rows& pool) {
  const bool has_both =
      !of_kind(rows, Kind::kSynchronous).empty() && !of_kind(rows, Kind::kAsynchronous).empty();
  if (!has_both || pool.empty()) return std::nullopt;
  const Rows in_step = of_kind(pool, Kind::kSynchronous);
  const Rows without_step = of_kind(pool, Kind::kAsynchronous);
  if (in_step.empty() && without_step.empty()) return std::nullopt;
  if (in_step.empty() || without_step.empty()) {
    const Kind missing = in_step.empty() ? Kind::kSynchronous : Kind::kAsynchronous;
    return "Synchronous and asynchronous cannot be compared: no " + kind_words(missing) +
           " variant came to a good end above guessing with every seed";
  }
  return Sentence(comparison, *best_of(in_step), *best_of(without_step)).write();
}

}  // namespace syncopate::bench
