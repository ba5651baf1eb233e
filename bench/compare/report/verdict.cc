#include "bench/compare/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "bench/compare/report/reported_faults.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

using Indices = std::vector<std::size_t>;

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// Composes the sentences of a verdict from the claims. The rows are those of the comparison.
class VerdictWriter {
 public:
  explicit VerdictWriter(const Comparison& comparison)
      : comparison_(comparison),
        rows_(summarise(comparison)),
        claims_(rows_),
        pool_(choices(rows_, comparison.chance)) {}

  Verdict write() {
    recommend();
    if (!pool_.empty()) {
      compare_kinds();
      recommend_distributed();
      name_more_accurate();
    }
    verdict_.warnings = warnings(comparison_, rows_);
    return std::move(verdict_);
  }

 private:
  void add(const std::string& sentence) { verdict_.sentences.push_back(sentence + "."); }

  std::string name(std::size_t row) const { return named(rows_[row]); }
  std::string names(const Indices& rows) const {
    std::vector<std::string> words;
    for (const std::size_t row : rows) words.push_back(name(row));
    return listed(words);
  }
  std::string target() const { return percent_text(*comparison_.target_accuracy); }
  std::string seconds(double value) const {
    return fmt::format("{}{}", short_text(value),
                       comparison_.has_virtual_clock ? " virtual s" : " s");
  }
  double mean_seconds(std::size_t row) const { return rows_[row].seconds_to_target->mean; }
  int fewest_seeds(const Indices& rows) const {
    int fewest = rows_[rows.front()].done;
    for (const std::size_t row : rows) fewest = std::min(fewest, rows_[row].done);
    return fewest;
  }

  // Returns the conditions that a result holds under: the learning rates, the virtual clock and the
  // injected faults, "with ..., "; "" if there is nothing to say.
  std::string setting() const {
    const std::string faults = describe_faults(effective_faults(comparison_));
    return fmt::format("{}{}{}", rates_words(),
                       comparison_.has_virtual_clock ? "under the virtual clock, " : "",
                       faults.empty() ? "" : fmt::format("with {}, ", faults));
  }

  std::string rates_words() const {
    const std::string& rule = comparison_.learning_rate_rule;
    if (rule == "linear") return "with learning rates scaled linearly with the batch, not tuned, ";
    if (rule == "sqrt")
      return "with learning rates scaled with the batch's square root, not tuned, ";
    if (rule == "inverse-workers") return "with learning rates divided by the workers, not tuned, ";
    if (rule == "preset") return "at the preset's learning rates, ";
    if (rule == "given") return "at the learning rates given for each variant, ";
    std::optional<double> rate;
    for (const VariantSummary& row : rows_) {
      if (!row.learning_rate) continue;
      if (rate && std::abs(*rate - row.learning_rate->mean) > 0.01 * *rate) return "";
      rate = row.learning_rate->mean;
    }
    return rate ? fmt::format("at one learning rate, {}, not tuned, ", exact_text(*rate)) : "";
  }

  // Whether the learning rate of each variant was chosen for it or scaled with its updates. If not,
  // a difference may be that of the rate, and no kind of training "beats" the other.
  bool has_suitable_rates() const {
    const std::string& rule = comparison_.learning_rate_rule;
    return !rule.empty() && rule != "none";
  }

  bool has_time(std::size_t row) const { return has_claimable_time(rows_[row]); }

  // Returns the rows of `among` that no claim excludes: no other row reached the target sooner, and
  // for a row that missed the target, no row that reached it ended more accurate.
  Indices best_by_time(const Indices& among) const {
    Indices best;
    for (const std::size_t row : among) {
      const bool is_excluded = std::ranges::any_of(among, [&](std::size_t other) {
        return claims_.is_sooner(other, row) ||
               (!has_time(row) && has_time(other) && claims_.is_more_accurate(other, row));
      });
      if (!is_excluded) best.push_back(row);
    }
    std::ranges::stable_sort(best, {}, [&](std::size_t row) {
      return has_time(row) ? mean_seconds(row) : std::numeric_limits<double>::infinity();
    });
    return best;
  }

  // Returns the rows of `among` than which no row is claimed to be more accurate.
  Indices best_by_accuracy(const Indices& among) const {
    Indices best;
    for (const std::size_t row : among) {
      const bool is_excluded = std::ranges::any_of(
          among, [&](std::size_t other) { return claims_.is_more_accurate(other, row); });
      if (!is_excluded && rows_[row].accuracy) best.push_back(row);
    }
    std::ranges::stable_sort(best, {}, [&](std::size_t row) { return -rows_[row].accuracy->mean; });
    return best;
  }

  // Returns the largest difference between two of the rows that their seeds could not have shown,
  // as words; "" if it is not known.
  std::string detectable_words(const Indices& rows, Measure measure) const {
    double most = 0.0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = i + 1; j < rows.size(); ++j) {
        const auto pair = claims_.difference(rows[i], rows[j], measure);
        if (pair) most = std::max(most, pair->detectable);
      }
    }
    if (!(most > 0.0) || !std::isfinite(most)) return "";
    return measure == Measure::kTime
               ? fmt::format("; a factor of {} could have been seen", factor_text(std::exp(most)))
               : fmt::format("; {} points could have been seen", points_text(most));
  }

  void recommend() {
    if (pool_.empty()) return add(why_nothing());
    if (rows_.size() < 2) {
      return add(fmt::format("Nothing is recommended: there is nothing to compare {} with",
                             named(rows_.front())));
    }
    const bool has_target = comparison_.target_accuracy.has_value();
    if (has_target && std::ranges::any_of(pool_, [&](std::size_t row) { return has_time(row); })) {
      return recommend_by_time();
    }
    const bool was_reached = std::ranges::any_of(
        pool_, [&](std::size_t row) { return rows_[row].seconds_to_target.has_value(); });
    if (has_target && was_reached) return decline_by_time();
    recommend_by_accuracy();
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

  void take(const Indices& rows) {
    for (const std::size_t row : rows) verdict_.recommended.push_back(rows_[row].label);
  }

  void recommend_by_time() {
    const Indices best = best_by_time(pool_);
    const std::size_t others = pool_.size() - best.size();
    if (others == 0) {
      Indices timed;
      std::ranges::copy_if(best, std::back_inserter(timed),
                           [&](auto row) { return has_time(row); });
      if (timed.size() < 2) {
        return add(
            fmt::format("Nothing is recommended: {}{} reached {} with every seed, the others "
                        "with some, and so few seeds show no difference",
                        setting(), names(timed), target()));
      }
      return add(fmt::format(
          "{}no variant is recommended over another: times to {}, {} ({}) to {} ({}), cannot be "
          "told "
          "apart with {}{}",
          capitalised(setting()), target(), seconds(mean_seconds(timed.front())),
          name(timed.front()), seconds(mean_seconds(timed.back())), name(timed.back()),
          count_text(fewest_seeds(timed), "seed"), detectable_words(timed, Measure::kTime)));
    }
    take(best);
    const std::string rest = others == 1 ? "the other variant was slower or less accurate"
                                         : fmt::format(
                                               "each of the other {} variants was slower or "
                                               "less accurate than one of these",
                                               others);
    if (best.size() == 1) return add(only_one(best.front(), others));
    add(fmt::format("Use {}: {}they reached {} soonest ({}) and cannot be told apart with {}; {}",
                    either(best), setting(), target(), times_of(best),
                    count_text(fewest_seeds(best), "seed"), rest));
  }

  // Returns the recommendation of a row that all others are worse than.
  std::string only_one(std::size_t row, std::size_t others) const {
    std::string text = fmt::format("Use {}: {}it reached {} soonest, in {}", name(row), setting(),
                                   target(), seconds(mean_seconds(row)));
    std::optional<std::size_t> next;
    for (const std::size_t other : pool_) {
      if (other == row || !has_time(other)) continue;
      if (!next || mean_seconds(other) < mean_seconds(*next)) next = other;
    }
    if (!next) {
      return fmt::format("{}; the {} missed it and ended less accurate", text,
                         others == 1 ? "other" : "others");
    }
    const PairDifference later = *claims_.difference(*next, row, Measure::kTime);
    return fmt::format("{}; {}{} took {} as long ({})", text, others == 1 ? "" : "the next, ",
                       fmt::format("{}{}", name(*next), others == 1 ? "" : ","),
                       factor_text(std::exp(later.value)), interval_words(later));
  }

  std::string times_of(const Indices& rows) const {
    std::vector<std::string> words;
    for (const std::size_t row : rows) {
      words.push_back(has_time(row)
                          ? seconds(mean_seconds(row))
                          : fmt::format("{} of {} seeds", rows_[row].reached, rows_[row].ended()));
    }
    return listed(words);
  }

  std::string either(const Indices& rows) const {
    std::string text = names(rows);
    const std::size_t at = text.rfind(" and ");
    if (at != std::string::npos) text.replace(at, 5, " or ");
    return text;
  }

  // Says why no variant is recommended although a variant reached the target with every seed.
  void decline_by_time() {
    const bool is_disturbed =
        std::ranges::any_of(pool_, [&](std::size_t row) { return rows_[row].disturbed > 0; });
    std::optional<std::size_t> first;
    for (const std::size_t row : pool_) {
      const auto median = median_of(row);
      if (median && (!first || *median < *median_of(*first))) first = row;
    }
    const std::string why = fewest_seeds(pool_) < kSeedsForTime
                                ? fmt::format("{} too few for a claim about time ({} are needed)",
                                              few(fewest_seeds(pool_)), kSeedsForTime)
                            : is_disturbed
                                ? std::string("the machine was too busy for a claim about time")
                                : std::string("times to the target of 0 s allow no claim");
    add(fmt::format("Nothing is recommended: {}; {}the shortest median time to {} was {}, {}", why,
                    setting(), target(), name(*first) + "'s", seconds(*median_of(*first))));
  }

  static std::string few(int seeds) {
    return seeds == 1 ? "1 seed is" : fmt::format("{} seeds are", seeds);
  }

  std::optional<double> median_of(std::size_t row) const {
    return censored_median(rows_[row].reached_seconds, rows_[row].ended());
  }

  void recommend_by_accuracy() {
    const Indices best = best_by_accuracy(pool_);
    std::string unreached;
    if (comparison_.target_accuracy) {
      unreached = fmt::format(
          ". No variant reached {} with every seed, which a larger budget may change", target());
    }
    std::vector<std::string> accuracies;
    for (const std::size_t row : best) accuracies.push_back(accuracy_of(rows_[row]));
    if (best.size() == pool_.size()) {
      return add(fmt::format(
          "{}no variant is recommended over another: final accuracies, {} ({}) to {} ({}), cannot "
          "be told apart with {}{}{}",
          capitalised(setting()), accuracies.front(), name(best.front()), accuracies.back(),
          name(best.back()), count_text(fewest_seeds(best), "seed"),
          detectable_words(best, Measure::kAccuracy), unreached));
    }
    take(best);
    add(fmt::format("Use {}: {}{} ended with the best accuracy ({}){}{}", either(best), setting(),
                    best.size() == 1 ? "it" : "they", listed(accuracies),
                    best.size() == 1 ? ""
                                     : fmt::format(" and cannot be told apart with {}",
                                                   count_text(fewest_seeds(best), "seed")),
                    unreached));
  }

  // Returns the row of a kind that the comparison of kinds is about: the fastest, or the most
  // accurate if no row of this kind reached the target with every seed.
  std::optional<std::size_t> best_of(Kind kind) const {
    std::optional<std::size_t> best;
    const auto is_better = [&](std::size_t a, std::size_t b) {
      const auto& time_a = rows_[a].seconds_to_target;
      const auto& time_b = rows_[b].seconds_to_target;
      if (time_a.has_value() != time_b.has_value()) return time_a.has_value();
      return time_a ? time_a->mean < time_b->mean
                    : rows_[a].accuracy->mean > rows_[b].accuracy->mean;
    };
    for (const std::size_t row : pool_) {
      if (rows_[row].kind == kind && (!best || is_better(row, *best))) best = row;
    }
    return best;
  }

  // Compares the best synchronous with the best asynchronous variant.
  void compare_kinds() {
    const auto synchronous = best_of(Kind::kSynchronous);
    const auto asynchronous = best_of(Kind::kAsynchronous);
    if (!synchronous || !asynchronous) return;
    const bool is_timed = comparison_.target_accuracy.has_value() &&
                          (rows_[*synchronous].reached > 0 || rows_[*asynchronous].reached > 0);
    const auto time = claims_.difference(*asynchronous, *synchronous, Measure::kTime);
    if (time) return compare_times(*time);
    const std::string accuracy = accuracy_words(*asynchronous, *synchronous);
    if (!is_timed) return add(capitalised(rates_words() + accuracy));
    add(capitalised(fmt::format("{}{} and {}; no claim about time is made{}; {}", rates_words(),
                                reached_words(*asynchronous), reached_words(*synchronous),
                                counts_words(*asynchronous, *synchronous), accuracy)));
  }

  // Returns "async reached 95 % with 3 of 5 seeds (median 1.2 s)".
  std::string reached_words(std::size_t row) const {
    const auto median = median_of(row);
    return fmt::format("{} reached {} with {} of {}{}", name(row), target(), rows_[row].reached,
                       count_text(rows_[row].ended(), "seed"),
                       median ? fmt::format(" (median {})", seconds(*median)) : "");
  }

  // Returns the probability of the counts of runs that reached the target, if the counts differ.
  std::string counts_words(std::size_t a, std::size_t b) const {
    if (rows_[a].reached == rows_[a].ended() && rows_[b].reached == rows_[b].ended()) return "";
    return fmt::format(
        " (Fisher's exact test of these counts alone: p = {:.2g})",
        fisher_exact_p(rows_[a].reached, rows_[a].ended(), rows_[b].reached, rows_[b].ended()));
  }

  void compare_times(const PairDifference& time) {
    const std::size_t first = time.value < 0.0 ? time.a : time.b;
    const std::size_t second = first == time.a ? time.b : time.a;
    const PairDifference later = *claims_.difference(second, first, Measure::kTime);
    const std::string facts =
        fmt::format("{} took {}, {} {} as long ({})", name(first), seconds(mean_seconds(first)),
                    name(second), factor_text(std::exp(later.value)), interval_words(later));
    std::string claim;
    if (!later.is_claimed()) {
      claim = later.is_equal()
                  ? fmt::format(
                        "synchronous and asynchronous training took equally long to {}, "
                        "within a factor of {}: ",
                        target(), factor_text(kEqualTime))
                  : fmt::format(
                        "synchronous and asynchronous training cannot be told apart in time "
                        "to {} with {}: ",
                        target(), count_text(later.seeds, "seed"));
    } else if (has_suitable_rates()) {
      claim = fmt::format("{} beats {} in time to {}: ", kind_words(first), kind_words(second),
                          target());
    } else {
      claim = fmt::format("in time to {}, ", target());
    }
    const std::string seen = later.is_claimed() || later.is_equal()
                                 ? ""
                                 : detectable_words({first, second}, Measure::kTime);
    add(capitalised(fmt::format("{}{}{}{}; {}", rates_words(), claim, facts, seen,
                                accuracy_words(first, second))));
  }

  std::string_view kind_words(std::size_t row) const {
    return rows_[row].kind == Kind::kSynchronous ? "synchronous" : "asynchronous";
  }

  // Compares two final accuracies: "a ended 1.40 points lower than b (1.17 to 1.63)".
  std::string accuracy_words(std::size_t a, std::size_t b) const {
    const auto pair = claims_.difference(a, b, Measure::kAccuracy);
    const std::string both = fmt::format("{} ({}) and {} ({})", accuracy_of(rows_[a]), name(a),
                                         accuracy_of(rows_[b]), name(b));
    if (!pair) {
      return have_same_weights(rows_[a], rows_[b])
                 ? "both ended with the same weights"
                 : fmt::format("final accuracies were {}, without a claim", both);
    }
    if (pair->is_claimed()) {
      return fmt::format("{} ended {} points {} than {} ({})", name(a),
                         points_text(std::abs(pair->value)), pair->value < 0.0 ? "lower" : "higher",
                         name(b), interval_words(*pair));
    }
    if (pair->is_equal()) {
      return fmt::format("final accuracies, {}, are equal within {} points", both,
                         points_text(kEqualAccuracy));
    }
    return fmt::format("final accuracies, {}, cannot be told apart{}", both,
                       detectable_words({a, b}, Measure::kAccuracy));
  }

  bool is_taken(std::size_t row) const {
    return std::ranges::find(verdict_.recommended, rows_[row].label) != verdict_.recommended.end();
  }

  // If only variants of one machine are recommended, names those to use over several machines.
  void recommend_distributed() {
    Indices distributed;
    for (const std::size_t row : pool_) {
      if (is_taken(row) && rows_[row].is_distributed.value_or(true)) return;
      if (rows_[row].is_distributed.value_or(false) && rows_[row].workers > 1) {
        distributed.push_back(row);
      }
    }
    const bool is_timed =
        std::ranges::any_of(distributed, [&](std::size_t row) { return has_time(row); });
    const Indices best = is_timed ? best_by_time(distributed) : best_by_accuracy(distributed);
    const bool is_choice = best.size() < distributed.size() || distributed.size() == 1;
    if (verdict_.recommended.empty() || best.empty() || !is_choice) return;
    add(fmt::format("Of the variants that can span several machines, use {} ({})", either(best),
                    is_timed ? times_of(best) : accuracy_of(rows_[best.front()])));
  }

  // Names the row that ended more accurate than all recommended rows.
  void name_more_accurate() {
    if (verdict_.recommended.empty() || !comparison_.target_accuracy) return;
    const std::size_t best = best_by_accuracy(pool_).front();
    Indices taken;
    std::ranges::copy_if(pool_, std::back_inserter(taken), [&](auto row) { return is_taken(row); });
    const bool is_above_all = std::ranges::all_of(
        taken, [&](std::size_t row) { return claims_.is_more_accurate(best, row); });
    if (!is_above_all) return;
    add(fmt::format("Where the final accuracy counts more than time, use {}: {}", name(best),
                    accuracy_words(best, taken.front())));
  }

  const Comparison& comparison_;
  const Rows rows_;
  const Claims claims_;
  const Indices pool_;
  Verdict verdict_;
};

}  // namespace

Verdict verdict(const Comparison& comparison) { return VerdictWriter(comparison).write(); }

}  // namespace syncopate::bench
