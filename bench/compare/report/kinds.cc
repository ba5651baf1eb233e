// The sentence of a verdict that compares synchronous with asynchronous training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/compare/report/verdict_words.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

class KindComparison {
 public:
  KindComparison(const Comparison& comparison, const Rows& rows, const Claims& claims,
                 const RowIndices& pool)
      : comparison_(comparison),
        rows_(rows),
        claims_(claims),
        words_(comparison, rows, claims),
        pool_(pool) {}

  // Compares the best synchronous with the best asynchronous variant.
  std::string compare() const {
    const auto synchronous = best_of(Kind::kSynchronous);
    const auto asynchronous = best_of(Kind::kAsynchronous);
    if (!synchronous || !asynchronous) return "";
    if (const auto time = claims_.difference(*asynchronous, *synchronous, Measure::kTime)) {
      return compare_times(*time);
    }
    const std::string accuracy = words_.accuracies(*asynchronous, *synchronous);
    const bool is_timed = comparison_.target_accuracy.has_value() &&
                          (rows_[*synchronous].reached > 0 || rows_[*asynchronous].reached > 0);
    if (!is_timed) return capitalised(words_.rates() + accuracy);
    return capitalised(
        fmt::format("{}of the best asynchronous and synchronous variants {} and {}; no claim about "
                    "time is made{}; {}",
                    words_.rates(), words_.reached(*asynchronous), words_.reached(*synchronous),
                    counts_words(rows_[*asynchronous], rows_[*synchronous]), accuracy));
  }

 private:
  // Returns the row of a kind that the comparison of kinds is about: the fastest, or the most
  // accurate if no row of this kind reached the target with every seed. Rows about which claims are
  // possible come first. strategy: if not "", only rows of this strategy count.
  std::optional<std::size_t> best_of(Kind kind, const std::string& strategy = "") const {
    std::optional<std::size_t> best;
    const auto is_better = [&](std::size_t a, std::size_t b) {
      const auto rank = [&](std::size_t row) {
        return has_claimable_time(rows_[row]) ? 2 : has_claimable_accuracy(rows_[row]) ? 1 : 0;
      };
      if (rank(a) != rank(b)) return rank(a) > rank(b);
      const auto& time_a = rows_[a].seconds_to_target;
      const auto& time_b = rows_[b].seconds_to_target;
      if (time_a.has_value() != time_b.has_value()) return time_a.has_value();
      return time_a ? time_a->mean < time_b->mean
                    : rows_[a].accuracy->mean > rows_[b].accuracy->mean;
    };
    for (const std::size_t row : pool_) {
      if (rows_[row].kind != kind || (!strategy.empty() && strategy_of(row) != strategy)) continue;
      if (!best || is_better(row, *best)) best = row;
    }
    return best;
  }

  // Returns the probability of the counts of runs that reached the target, if runs missed it.
  static std::string counts_words(const VariantSummary& a, const VariantSummary& b) {
    if (a.reached == a.ended() && b.reached == b.ended()) return "";
    return fmt::format(" (Fisher's exact test of these counts alone: p = {:.2g})",
                       fisher_exact_p(a.reached, a.ended(), b.reached, b.ended()));
  }

  std::string compare_times(const PairDifference& time) const {
    const std::size_t first = time.value < 0.0 ? time.a : time.b;
    const std::size_t second = first == time.a ? time.b : time.a;
    const PairDifference later = *claims_.difference(second, first, Measure::kTime);
    std::string claim = fmt::format("in time to {}, ", words_.target());
    std::string seen;
    if (!later.is_claimed() && later.is_equal()) {
      claim = fmt::format(
          "the best synchronous and the best asynchronous variant took equally long to {}, within "
          "a "
          "factor of {}: ",
          words_.target(), decimal_text(kEqualTime, 1));
    } else if (!later.is_claimed()) {
      seen = words_.detectable({first, second}, Measure::kTime);
      claim = fmt::format(
          "the best synchronous and the best asynchronous variant cannot be told apart in time to "
          "{}{}: ",
          words_.target(), seen.empty() ? "" : " with " + count_text(later.seeds, "seed"));
    } else if (words_.has_suitable_rates()) {
      claim = fmt::format("the best {} variant beats the best {} one in time to {}: ",
                          kind_words(first), kind_words(second), words_.target());
    }
    return capitalised(
        fmt::format("{}{}{} took {} (arithmetic mean), {} {} as long{}{}{}{}; {}", words_.rates(),
                    claim, words_.name(first), words_.mean_time(first), words_.name(second),
                    factor_text(std::exp(later.value)), in_parentheses(later), seen,
                    strategies_words(first, second), within_strategies(first, second),
                    words_.accuracies(first, second)));
  }

  std::string strategy_of(std::size_t row) const {
    return rows_[row].label.substr(0, rows_[row].label.find_first_of(":+{, "));
  }

  // If rows a and b are of different strategies, returns what is claimed about the best synchronous
  // and the best asynchronous variant within each strategy that has both: "; within S, ...".
  std::string within_strategies(std::size_t a, std::size_t b) const {
    if (strategy_of(a) == strategy_of(b)) return "";
    std::set<std::string> strategies;
    for (const std::size_t row : pool_) strategies.insert(strategy_of(row));
    std::string text;
    for (const std::string& strategy : strategies) {
      const auto synchronous = best_of(Kind::kSynchronous, strategy);
      const auto asynchronous = best_of(Kind::kAsynchronous, strategy);
      if (!synchronous || !asynchronous) continue;
      const auto time = claims_.difference(*asynchronous, *synchronous, Measure::kTime);
      if (time) {
        const std::string batches = batches_words(*asynchronous, *synchronous);
        text += fmt::format("; within {}, {}{}", strategy, words_.times(*time),
                            batches.empty() ? "" : ", including the difference " + batches);
      }
    }
    return text;
  }

  // Returns "between updates of 128 and 32 samples"; "" for rows with equal or unknown batches.
  std::string batches_words(std::size_t a, std::size_t b) const {
    const auto batch_a = rows_[a].batch();
    const auto batch_b = rows_[b].batch();
    if (!batch_a || !batch_b || std::round(*batch_a) == std::round(*batch_b)) return "";
    return fmt::format("between updates of {} and {} samples", decimal_text(*batch_a, 0),
                       decimal_text(*batch_b, 0));
  }

  // Two variants of different strategies or batches differ in more than being synchronous. Returns
  // a sentence part that says so; "" if they have neither.
  std::string strategies_words(std::size_t a, std::size_t b) const {
    std::vector<std::string> differences;
    if (strategy_of(a) != strategy_of(b)) {
      differences.push_back(fmt::format("between {} and {}", strategy_of(a), strategy_of(b)));
    }
    const std::string batches = batches_words(a, b);
    if (!batches.empty()) differences.push_back(batches);
    if (differences.empty()) return "";
    return fmt::format("; this includes the difference {}", listed(differences));
  }

  std::string_view kind_words(std::size_t row) const {
    return rows_[row].kind == Kind::kSynchronous ? "synchronous" : "asynchronous";
  }

  const Comparison& comparison_;
  const Rows& rows_;
  const Claims& claims_;
  const VerdictWords words_;
  const RowIndices& pool_;
};

}  // namespace

std::string compare_kinds(const Comparison& comparison, const Rows& rows, const Claims& claims,
                          const RowIndices& pool) {
  return KindComparison(comparison, rows, claims, pool).compare();
}

}  // namespace syncopate::bench
