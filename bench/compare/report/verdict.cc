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
        pool_(choices(rows_, comparison.chance)),
        left_out_(pool_.empty() ? std::vector<std::string>() : left_out()) {}

  Verdict write() {
    recommend();
    if (!left_out_.empty()) add("Left out: " + listed(left_out_));
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

  // The rows of a pool, divided by what the claims say about their final accuracy.
  struct ByAccuracy {
    RowIndices best;     // the most accurate row, and all that cannot be told apart from the best
    RowIndices worse;    // a row of `best` ended more accurate
    RowIndices unknown;  // not compared with any other row
  };

  ByAccuracy divide_by_accuracy(RowIndices pool) const {
    ByAccuracy found;
    std::ranges::stable_sort(pool, {}, [&](std::size_t row) { return -rows_[row].accuracy->mean; });
    for (const std::size_t row : pool) {
      const bool is_worse = std::ranges::any_of(
          found.best, [&](std::size_t other) { return claims_.is_more_accurate(other, row); });
      RowIndices& group = !has_claimable_accuracy(rows_[row]) ? found.unknown
                          : is_worse                          ? found.worse
                                                              : found.best;
      group.push_back(row);
    }
    return found;
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
    const bool has_numbers = std::ranges::any_of(
        rows_, [](const auto& row) { return row.done > 0 && row.not_numbers() == 0; });
    if (!has_numbers) {
      return "Nothing is recommended: each variant has a final accuracy that is not a number";
    }
    const Chance& chance = *comparison_.chance;
    return fmt::format(
        "Nothing is recommended: no variant ended above {}, which guessing may reach (the most "
        "frequent of {} classes is {} of {} test samples, plus three standard errors)",
        percent_text(chance.limit()), chance.classes, percent_text(chance.share),
        decimal_text(static_cast<double>(chance.test_samples), 0));
  }

  // Returns "; nothing is claimed about the time of a (4 of 5 seeds)"; "" for no rows.
  std::string unknown_words(const RowIndices& unknown, Measure measure) const {
    if (unknown.empty()) return "";
    std::vector<std::string> all;
    for (const std::size_t row : unknown) {
      all.push_back(fmt::format("{} ({})", words_.name(row), words_.why_no_claim(row, measure)));
    }
    return fmt::format("; nothing is claimed about {}{}",
                       measure == Measure::kTime ? "the time of " : "", listed(all));
  }

  // Returns the rows that lack results and are in no comparison: "a (1 of 5 runs failed; median
  // 0.0757 s)". Rows no better than guessing have a warning of their own.
  std::vector<std::string> left_out() const {
    std::vector<std::string> all;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const VariantSummary& summary = rows_[row];
      const bool is_in_pool = std::ranges::find(pool_, row) != pool_.end();
      if (is_in_pool || summary.done == 0 || summary.is_at_chance(comparison_.chance)) continue;
      const auto of_all = [&](int runs, std::string_view what) {
        return fmt::format("{} of {} {}", runs,
                           count_text(summary.ended() + summary.pending, "run"), what);
      };
      std::vector<std::string> facts;
      if (summary.failed > 0) facts.push_back(of_all(summary.failed, "failed"));
      if (summary.pending > 0) facts.push_back(of_all(summary.pending, "not yet trained"));
      if (summary.not_numbers() > 0) {
        facts.push_back(
            of_all(summary.not_numbers(), "ended with an accuracy that is not a number"));
      } else if (words_.median(row)) {
        if (summary.disturbed == 0)
          facts.push_back("median " + words_.seconds(*words_.median(row)));
      } else {
        facts.push_back("final accuracy of the others " + accuracy_of(summary));
      }
      all.push_back(fmt::format("{} ({})", words_.name(row), fmt::join(facts, "; ")));
    }
    return all;
  }

  // Returns " of the rows that can be compared" if there are others.
  std::string_view among(const RowIndices& unknown) const {
    return left_out_.empty() && unknown.empty() ? "" : " of the rows that can be compared";
  }

  void recommend_by_time(const ByTime& rows) {
    const std::string unknown = unknown_words(rows.unknown, Measure::kTime);
    const RowIndices& best = rows.best;
    if (rows.slower.empty() && rows.worse.empty()) {
      if (best.size() == 1) {
        return add(fmt::format("Nothing is recommended: {}{} took {} to {}{}", words_.setting(),
                               words_.name(best.front()), words_.mean_time(best.front()),
                               words_.target(), unknown));
      }
      return add(fmt::format(
          "{}no variant is recommended over another: arithmetic mean times to {}, {} ({}) to {} "
          "({}), cannot be told apart with {}{}{}",
          capitalised(words_.setting()), words_.target(), words_.mean_time(best.front()),
          words_.name(best.front()), words_.mean_time(best.back()), words_.name(best.back()),
          words_.seeds(best), words_.detectable(best, Measure::kTime), unknown));
    }
    take(best);
    const RowIndices others(best.begin() + 1, best.end());
    // "Soonest" would be wrong of a mean where a run of another row was sooner.
    std::string text =
        !others.empty() && !rows.slower.empty()
            ? fmt::format(
                  "No single variant is shown best{}: {}{} had the shortest arithmetic mean time "
                  "to "
                  "{}, {}",
                  among(rows.unknown), words_.setting(), words_.name(best.front()), words_.target(),
                  words_.mean_time(best.front()))
            : fmt::format(
                  "Use {}: {}{} reached {} {}{}, in {} (arithmetic mean)", words_.either(best),
                  words_.setting(), others.empty() ? "it" : words_.name(best.front()),
                  words_.target(), rows.slower.empty() ? "with every seed" : "soonest",
                  rows.slower.empty() ? "" : among(rows.unknown), words_.mean_time(best.front()));
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

  // Returns why no row of the pool can be compared with another.
  std::string why_no_claims(Measure measure) const {
    const auto is_disturbed = [&](std::size_t row) { return rows_[row].disturbed > 0; };
    const bool is_time = measure == Measure::kTime;
    const int seeds = words_.fewest_seeds(pool_);
    const int needed = is_time ? kSeedsForTime : kSeedsForAccuracy;
    std::vector<std::string> reasons;
    if (std::ranges::any_of(pool_, is_disturbed)) {
      reasons.push_back(fmt::format(
          "other programs took up to {} % of the CPUs, and a claim needs a quiet machine",
          decimal_text(100.0 * most_disturbance(rows_), 0)));
    }
    if (seeds < needed) {
      reasons.push_back(fmt::format("{} too few for a claim about {} ({} are needed)",
                                    seeds == 1 ? "1 seed is" : fmt::format("{} seeds are", seeds),
                                    is_time ? "time" : "accuracy", needed));
    }
    if (is_time && !rows_.front().has_comparable_times) {
      reasons.emplace_back("times of several machines cannot be compared");
    }
    const auto has_failed = [&](std::size_t row) { return rows_[row].failed > 0; };
    if (reasons.empty() && std::ranges::all_of(pool_, has_failed)) {
      reasons.emplace_back("each variant has a failed run");
    }
    if (reasons.empty()) reasons.emplace_back("these results allow no claim (see the warnings)");
    return fmt::format("{}", fmt::join(reasons, "; "));
  }

  // Says why no variant is recommended although a variant reached the target with every seed. The
  // shortest time on a busy machine is not named: it shows which variant took most of the CPUs.
  void decline_by_time() {
    std::optional<std::size_t> first;
    const auto median = [&](std::size_t row) { return *words_.median(row); };
    bool is_busy = false;
    for (const std::size_t row : pool_) {
      const VariantSummary& summary = rows_[row];
      if (summary.disturbed > 0) {
        is_busy = true;
      } else if (summary.seconds_to_target && summary.reached == summary.ended() &&
                 summary.has_comparable_times && (!first || median(row) < median(*first))) {
        first = row;
      }
    }
    std::string text = "Nothing is recommended: " + why_no_claims(Measure::kTime);
    if (first) {
      text += fmt::format("; {}the shortest median time{} to {} was {} ({}), which may be chance",
                          words_.setting(), is_busy ? " of the other rows" : "", words_.target(),
                          words_.seconds(median(*first)), words_.name(*first));
    } else if (const std::string faults = words_.faults(); !faults.empty()) {
      text += "; the runs were made with " + faults;
    }
    add(text);
  }

  void recommend_by_accuracy() {
    const ByAccuracy rows = divide_by_accuracy(pool_);
    const RowIndices& best = rows.best;
    std::string rest = best.empty() ? "" : unknown_words(rows.unknown, Measure::kAccuracy);
    if (comparison_.target_accuracy) {
      rest +=
          fmt::format(". No variant reached {} with every seed, which a larger budget may change",
                      words_.target());
    }
    if (best.empty()) {
      return add("Nothing is recommended: " + why_no_claims(Measure::kAccuracy) + rest);
    }
    if (rows.worse.empty() && best.size() == 1) {
      return add(fmt::format("Nothing is recommended: {}{} ended with {}{}", words_.setting(),
                             words_.name(best.front()), accuracy_of(rows_[best.front()]), rest));
    }
    const std::string apart = fmt::format("cannot be told apart with {}{}", words_.seeds(best),
                                          words_.detectable(best, Measure::kAccuracy));
    if (rows.worse.empty()) {
      return add(fmt::format(
          "{}no variant is recommended over another: final accuracies, {} ({}) to {} ({}), {}{}",
          capitalised(words_.setting()), accuracy_of(rows_[best.front()]),
          words_.name(best.front()), accuracy_of(rows_[best.back()]), words_.name(best.back()),
          apart, rest));
    }
    take(best);
    add(fmt::format("Use {}: {}{} ended with the best accuracy{} ({}){}{}", words_.either(best),
                    words_.setting(), best.size() == 1 ? "it" : "they", among(rows.unknown),
                    accuracies_of(best), best.size() == 1 ? "" : " and " + apart, rest));
  }

  // Returns "97.21 % and 97.20 %".
  std::string accuracies_of(const RowIndices& rows) const {
    std::vector<std::string> accuracies;
    for (const std::size_t row : rows) accuracies.push_back(accuracy_of(rows_[row]));
    return listed(accuracies);
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
                                      "a probability of about 80 %",
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
    const ByAccuracy by_accuracy = divide_by_accuracy(distributed);
    const bool is_timed = !by_time.best.empty();
    const RowIndices& best = is_timed ? by_time.best : by_accuracy.best;
    const std::size_t compared =
        distributed.size() - (is_timed ? by_time.unknown : by_accuracy.unknown).size();
    if (best.empty() || (best.size() == compared && distributed.size() > 1)) return;
    const std::string_view of = "Of the variants that can span several machines";
    // Times of one machine without delays of a network recommend nothing for several machines.
    const bool has_links =
        comparison_.has_virtual_clock || comparison_.faults.find("--link-") != std::string::npos;
    if (!is_timed || has_links) {
      return add(fmt::format("{}, use {} ({})", of, words_.either(best),
                             is_timed ? words_.mean_times(best) : accuracies_of(best)));
    }
    add(fmt::format(
        "{}, {} {} soonest on this one machine ({}); for several machines, compare with "
        "--link-delay, or use plan",
        of, words_.names(best), best.size() == 1 ? "was" : "were", words_.mean_times(best)));
  }

  // Names the rows that ended more accurate than all recommended rows.
  void name_more_accurate() {
    if (verdict_.recommended.empty() || !comparison_.target_accuracy) return;
    const RowIndices best = divide_by_accuracy(pool_).best;
    RowIndices taken;
    std::ranges::copy_if(pool_, std::back_inserter(taken), [&](auto row) { return is_taken(row); });
    const bool is_above_all = !best.empty() && std::ranges::all_of(taken, [&](std::size_t row) {
      return claims_.is_more_accurate(best.front(), row);
    });
    if (!is_above_all) return;
    const RowIndices others(best.begin() + 1, best.end());
    add(fmt::format("Where the final accuracy counts more than time, use {}: {}{}",
                    words_.either(best), words_.accuracies(best.front(), taken.front()),
                    others.empty() ? ""
                                   : fmt::format(", and {} ({}) cannot be told apart from {}",
                                                 words_.names(others), accuracies_of(others),
                                                 words_.name(best.front()))));
  }

  const Comparison& comparison_;
  const Rows rows_;
  const Claims claims_;
  const VerdictWords words_;
  const RowIndices pool_;
  const std::vector<std::string> left_out_;
  Verdict verdict_;
};

}  // namespace

Verdict verdict(const Comparison& comparison) { return VerdictWriter(comparison).write(); }

}  // namespace syncopate::bench
