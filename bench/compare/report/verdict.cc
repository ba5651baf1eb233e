#include "bench/compare/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/compare/report/verdict_words.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Composes the sentences of a verdict from the claims. The rows are those of the comparison.
class VerdictWriter {
 public:
  explicit VerdictWriter(const Comparison& comparison)
      : comparison_(comparison),
        rows_(summarise(comparison)),
        claims_(rows_),
        words_(comparison_, rows_, claims_),
        pool_(choices(rows_, comparison.chance)) {}

  Verdict write() {
    recommend();
    if (pool_.size() > 1) {
      const std::string kinds = compare_kinds(comparison_, rows_, claims_, pool_);
      if (!kinds.empty()) add(kinds);
      compare_with_one_worker();
      recommend_distributed();
      name_more_accurate();
    }
    verdict_.warnings = warnings(comparison_, rows_);
    return std::move(verdict_);
  }

 private:
  void add(const std::string& sentence) { verdict_.sentences.push_back(sentence + "."); }

  bool has_time(std::size_t row) const { return has_claimable_time(rows_[row]); }
  double mean_seconds(std::size_t row) const { return rows_[row].seconds_to_target->mean; }

  // The rows of a pool, divided by what the claims say about their time to the target.
  struct ByTime {
    RowIndices best;     // the fastest row, and all rows that cannot be told apart from the best
    RowIndices slower;   // a row of `best` reached the target sooner
    RowIndices worse;    // without a claimable time, and less accurate than a row of `best`
    RowIndices unknown;  // without a claimable time
  };

  ByTime divide_by_time(RowIndices pool) const {
    ByTime found;
    std::ranges::stable_sort(pool, {}, [&](std::size_t row) {
      return has_time(row) ? mean_seconds(row) : std::numeric_limits<double>::infinity();
    });
    for (const std::size_t row : pool) {
      const auto is_behind = [&](std::size_t other) {
        return has_time(row) ? claims_.is_sooner(other, row) : claims_.is_more_accurate(other, row);
      };
      const bool is_excluded = std::ranges::any_of(found.best, is_behind);
      RowIndices& group = has_time(row) ? (is_excluded ? found.slower : found.best)
                                        : (is_excluded ? found.worse : found.unknown);
      group.push_back(row);
    }
    return found;
  }

  // Returns the rows of `pool` than which no better row of them is claimed to be more accurate.
  RowIndices best_by_accuracy(RowIndices pool) const {
    RowIndices best;
    std::erase_if(pool, [&](std::size_t row) { return !rows_[row].accuracy; });
    std::ranges::stable_sort(pool, {}, [&](std::size_t row) { return -rows_[row].accuracy->mean; });
    for (const std::size_t row : pool) {
      const bool is_excluded = std::ranges::any_of(
          best, [&](std::size_t other) { return claims_.is_more_accurate(other, row); });
      if (!is_excluded) best.push_back(row);
    }
    return best;
  }

  void take(const RowIndices& rows) {
    for (const std::size_t row : rows) verdict_.recommended.push_back(rows_[row].label);
  }

  void recommend() {
    if (pool_.empty()) return add(why_nothing());
    if (rows_.size() < 2) {
      return add(fmt::format("Nothing is recommended: there is nothing to compare {} with",
                             named(rows_.front())));
    }
    if (pool_.size() < 2) {
      return add(fmt::format(
          "Nothing is recommended: {}only {} has complete results that are better than guessing",
          words_.setting(), words_.name(pool_.front())));
    }
    if (!comparison_.target_accuracy) return recommend_by_accuracy();
    if (std::ranges::any_of(pool_, [&](std::size_t row) { return has_time(row); })) {
      return recommend_by_time(divide_by_time(pool_));
    }
    const bool was_reached = std::ranges::any_of(
        pool_, [&](std::size_t row) { return rows_[row].seconds_to_target.has_value(); });
    was_reached ? decline_by_time() : recommend_by_accuracy();
  }

  std::string why_nothing() const {
    const bool has_result =
        std::ranges::any_of(rows_, [](const auto& row) { return row.done > 0; });
    if (!has_result) return "Nothing is recommended: no run succeeded";
    if (!comparison_.chance) return "Nothing is recommended: no final accuracy is a number";
    const Chance& chance = *comparison_.chance;
    return fmt::format(
        "Nothing is recommended: no variant ended above {}, which guessing may reach (the most "
        "frequent of {} classes is {} of {} test samples, plus three standard errors)",
        percent_text(chance.limit()), chance.classes, percent_text(chance.share),
        decimal_text(static_cast<double>(chance.test_samples), 0));
  }

  // Returns "; nothing is claimed about the time of a (4 of 5 seeds)"; "" for no rows.
  std::string unknown_words(const RowIndices& unknown) const {
    if (unknown.empty()) return "";
    std::vector<std::string> all;
    for (const std::size_t row : unknown) {
      all.push_back(fmt::format("{} ({})", words_.name(row), words_.why_no_time(row)));
    }
    return fmt::format("; nothing is claimed about the time of {}", listed(all));
  }

  void recommend_by_time(const ByTime& rows) {
    const std::string unknown = unknown_words(rows.unknown);
    const RowIndices& best = rows.best;
    if (rows.slower.empty() && rows.worse.empty()) {
      if (best.size() == 1) {
        return add(fmt::format("Nothing is recommended: {}{} took {} to {}{}", words_.setting(),
                               words_.name(best.front()), words_.mean_time(best.front()),
                               words_.target(), unknown));
      }
      return add(fmt::format(
          "{}no variant is recommended over another: times to {}, {} ({}) to {} ({}), cannot be "
          "told "
          "apart with {}{}{}",
          capitalised(words_.setting()), words_.target(), words_.mean_time(best.front()),
          words_.name(best.front()), words_.mean_time(best.back()), words_.name(best.back()),
          words_.seeds(best), words_.detectable(best, Measure::kTime), unknown));
    }
    take(best);
    const RowIndices others(best.begin() + 1, best.end());
    std::string text = fmt::format(
        "Use {}: {}{} reached {} {}, in {}", words_.either(best), words_.setting(),
        others.empty() ? "it" : words_.name(best.front()), words_.target(),
        rows.slower.empty() ? "with every seed" : "soonest", words_.mean_time(best.front()));
    if (!others.empty()) {
      text += fmt::format(", and {} ({}) cannot be told apart from it with {}{}",
                          words_.names(others), words_.mean_times(others), words_.seeds(best),
                          words_.detectable(best, Measure::kTime));
    }
    add(text + slower_words(rows) +
        (rows.worse.empty() ? ""
                            : fmt::format("; {} missed {} and ended less accurate",
                                          words_.names(rows.worse), words_.target())) +
        unknown);
  }

  // Returns what is claimed about the rows that took longer; "" if there are none.
  std::string slower_words(const ByTime& rows) const {
    if (rows.slower.empty()) return "";
    if (rows.best.size() > 1) {
      const bool is_first_sooner = std::ranges::all_of(
          rows.slower, [&](std::size_t row) { return claims_.is_sooner(rows.best.front(), row); });
      return fmt::format(
          "; {} took longer than {}", words_.names(rows.slower),
          is_first_sooner ? words_.name(rows.best.front()) : "at least one of these");
    }
    const std::size_t next = rows.slower.front();
    const PairDifference later = *claims_.difference(next, rows.best.front(), Measure::kTime);
    const std::string factor = factor_text(std::exp(later.value));
    return rows.slower.size() == 1 ? fmt::format("; {} took {} as long{}", words_.name(next),
                                                 factor, in_parentheses(later))
                                   : fmt::format("; the next, {}, took {} as long{}",
                                                 words_.name(next), factor, in_parentheses(later));
  }

  // Says why no variant is recommended although a variant reached the target with every seed.
  void decline_by_time() {
    std::optional<std::size_t> first;
    for (const std::size_t row : pool_) {
      const auto median = words_.median(row);
      if (median && (!first || *median < *words_.median(*first))) first = row;
    }
    const auto is_disturbed = [&](std::size_t row) { return rows_[row].disturbed > 0; };
    const int seeds = words_.fewest_seeds(pool_);
    const std::string why =
        seeds < kSeedsForTime
            ? fmt::format("{} too few for a claim about time ({} are needed)",
                          seeds == 1 ? "1 seed is" : fmt::format("{} seeds are", seeds),
                          kSeedsForTime)
        : std::ranges::any_of(pool_, is_disturbed)
            ? std::string("the machine was too busy for a claim about time")
            : std::string("these times allow no claim (see the warnings)");
    add(fmt::format("Nothing is recommended: {}; {}the shortest median time to {} was {} ({})", why,
                    words_.setting(), words_.target(), words_.seconds(*words_.median(*first)),
                    words_.name(*first)));
  }

  void recommend_by_accuracy() {
    const RowIndices best = best_by_accuracy(pool_);
    std::string unreached;
    if (comparison_.target_accuracy) {
      unreached =
          fmt::format(". No variant reached {} with every seed, which a larger budget may change",
                      words_.target());
    }
    const std::string apart = fmt::format("cannot be told apart with {}{}", words_.seeds(best),
                                          words_.detectable(best, Measure::kAccuracy));
    if (best.size() == pool_.size()) {
      return add(fmt::format(
          "{}no variant is recommended over another: final accuracies, {} ({}) to {} ({}), {}{}",
          capitalised(words_.setting()), accuracy_of(rows_[best.front()]),
          words_.name(best.front()), accuracy_of(rows_[best.back()]), words_.name(best.back()),
          apart, unreached));
    }
    take(best);
    std::vector<std::string> accuracies;
    for (const std::size_t row : best) accuracies.push_back(accuracy_of(rows_[row]));
    add(fmt::format("Use {}: {}{} ended with the best accuracy ({}){}{}", words_.either(best),
                    words_.setting(), best.size() == 1 ? "it" : "they", listed(accuracies),
                    best.size() == 1 ? "" : " and " + apart, unreached));
  }

  bool is_taken(std::size_t row) const {
    return std::ranges::find(verdict_.recommended, rows_[row].label) != verdict_.recommended.end();
  }

  // Says than which rows with one worker no variant with several workers was shown to be faster,
  // and which variants took longer.
  void compare_with_one_worker() {
    RowIndices one_workers;
    RowIndices several;
    for (const std::size_t row : pool_) {
      if (!has_time(row)) continue;
      (rows_[row].kind == Kind::kOneWorker ? one_workers : several).push_back(row);
    }
    const auto is_recommended = [&](std::size_t row) { return is_taken(row); };
    if (one_workers.empty() || several.empty()) return;
    // A recommendation of one-worker rows alone says it already.
    if (!verdict_.recommended.empty() && std::ranges::none_of(several, is_recommended)) return;
    const auto is_beaten = [&](std::size_t one_worker) {
      return std::ranges::any_of(
          several, [&](std::size_t row) { return claims_.is_sooner(row, one_worker); });
    };
    const auto mean_of = [&](std::size_t row) { return mean_seconds(row); };
    if (is_beaten(*std::ranges::min_element(one_workers, {}, mean_of))) return;
    std::vector<std::string> factors;
    std::string slower_text;
    RowIndices unbeaten;
    for (const std::size_t one_worker : one_workers) {
      RowIndices slower;
      std::ranges::copy_if(several, std::back_inserter(slower),
                           [&](std::size_t row) { return claims_.is_sooner(one_worker, row); });
      slower_text +=
          fmt::format("; {} longer than {}",
                      slower.empty() ? "none was shown to take" : words_.names(slower) + " took",
                      words_.name(one_worker));
      if (is_beaten(one_worker)) continue;
      unbeaten.push_back(one_worker);
      const std::string factor = words_.detectable_over(one_worker, several);
      if (!factor.empty()) factors.push_back(factor);
    }
    add(fmt::format(
        "No variant with several workers or replicas was shown to reach {} sooner than {}{}{}",
        words_.target(), words_.either(unbeaten),
        factors.empty() ? ""
                        : fmt::format("; a factor of {} would have been seen for each of them with "
                                      "a probability of 80 %",
                                      listed(factors)),
        slower_text));
  }

  // If only variants of one machine are recommended, names those to use over several machines.
  void recommend_distributed() {
    RowIndices distributed;
    for (const std::size_t row : pool_) {
      if (is_taken(row) && rows_[row].is_distributed.value_or(true)) return;
      if (rows_[row].is_distributed.value_or(false) && rows_[row].workers > 1) {
        distributed.push_back(row);
      }
    }
    if (verdict_.recommended.empty() || distributed.empty()) return;
    const ByTime by_time = divide_by_time(distributed);
    const bool is_timed = !by_time.best.empty();
    const RowIndices best = is_timed ? by_time.best : best_by_accuracy(distributed);
    const std::size_t compared =
        is_timed ? distributed.size() - by_time.unknown.size() : distributed.size();
    if (best.empty() || (best.size() == compared && distributed.size() > 1)) return;
    add(fmt::format("Of the variants that can span several machines, use {} ({})",
                    words_.either(best),
                    is_timed ? words_.mean_times(best) : accuracy_of(rows_[best.front()])));
  }

  // Names the row that ended more accurate than all recommended rows.
  void name_more_accurate() {
    if (verdict_.recommended.empty() || !comparison_.target_accuracy) return;
    const RowIndices best = best_by_accuracy(pool_);
    RowIndices taken;
    std::ranges::copy_if(pool_, std::back_inserter(taken), [&](auto row) { return is_taken(row); });
    const bool is_above_all = std::ranges::all_of(
        taken, [&](std::size_t row) { return claims_.is_more_accurate(best.front(), row); });
    if (!is_above_all) return;
    add(fmt::format("Where the final accuracy counts more than time, use {}: {}",
                    words_.name(best.front()), words_.accuracies(best.front(), taken.front())));
  }

  const Comparison& comparison_;
  const Rows rows_;
  const Claims claims_;
  const VerdictWords words_;
  const RowIndices pool_;
  Verdict verdict_;
};

}  // namespace

Verdict verdict(const Comparison& comparison) { return VerdictWriter(comparison).write(); }

}  // namespace syncopate::bench
