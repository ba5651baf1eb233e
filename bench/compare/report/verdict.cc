#include "bench/compare/report/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/compare/report/findings.h"
#include "bench/compare/report/recommendation.h"
#include "bench/compare/report/text.h"
#include "bench/compare/report/wording.h"

namespace syncopate::bench {
namespace {

constexpr int kEnoughSeeds = 3;
constexpr double kAlike = 1.1;  // samples that are about as many

class Verdict {
 public:
  explicit Verdict(const Comparison& comparison)
      : comparison_(comparison), rows_(summarise(comparison)) {}

  std::string write() {
    if (reference(rows_) == nullptr) {
      say_unfinished();
      say("No run has come to a good end, so nothing can be said and nothing recommended");
      return text_;
    }
    if (!comparison_.budget.empty()) say("The budget of a run was " + comparison_.budget);
    if (comparison_.target_accuracy) say_time();
    say_identical();
    say_accuracy();
    say_batches();
    if (comparison_.target_accuracy) say_unreached();
    say_unfinished();
    say_seeds();
    say(recommendation(comparison_, rows_));
    return text_;
  }

 private:
  void say(const std::string& sentence) { text_ += (text_.empty() ? "" : " ") + sentence + "."; }

  std::string target() const { return percent_text(*comparison_.target_accuracy); }

  // Under which conditions; said once, in front of the first sentence.
  std::string setting() const {
    std::string words;
    if (comparison_.has_virtual_clock) words = "under the virtual clock";
    if (!comparison_.trouble.empty()) {
      words += (words.empty() ? "with " : ", with ") + trouble_words(comparison_.trouble);
    }
    if (words.empty()) return "";
    words[0] = words[0] == 'u' ? 'U' : 'W';
    return words + ", ";
  }

  std::string time_of(const VariantSummary& row) const {
    return seconds_text(row.seconds_to_target->mean);
  }

  // "", or how sure the factor between two times is.
  static std::string interval_of(const std::optional<TimeRatio>& ratio) {
    if (!ratio || !ratio->has_spread) return "";
    const Interval& interval = ratio->interval;
    if (!ratio->is_bounded()) {
      return ratio->is_significant() ? "; at least " + factor_text(interval.low) : "";
    }
    return "; 95 % interval " + factor_text(interval.low) + " to " + factor_text(interval.high);
  }

  // Of the evaluations that told that the target was reached.
  void say_distance() {
    double least = std::numeric_limits<double>::infinity();
    double most = 0.0;
    for (const VariantSummary& row : rows_) {
      if (!row.seconds_to_target) continue;
      for (const double gap : row.reached_gaps) {
        least = std::min(least, gap);
        most = std::max(most, gap);
      }
    }
    if (!(most > 0.0)) return;
    const std::string low = seconds_text(least);
    const std::string high = seconds_text(most);
    say("A time is that of the first evaluation at " + target() + " or above, " +
        (low == high ? high : low + " to " + high) +
        " after the one before: it is no surer than that");
  }

  void say_time() {
    const VariantSummary* first = fastest(rows_);
    if (first == nullptr) {
      say((setting().empty() ? "No" : setting() + "no") + " variant reached " + target() +
          " with every seed");
      return;
    }
    std::string sentence = setting() + named(*first) + " reached " + target();
    const VariantSummary* base = reference(rows_);
    const VariantSummary* second = runner_up(rows_, *first);
    const VariantSummary* rival = base != first && base->seconds_to_target ? base : second;
    if (rival == nullptr) {
      const bool is_alone = rows_.size() > 1 && identical_to(rows_, *first).empty();
      say(sentence + " in " + time_of(*first) +
          (is_alone ? ", the only one to do so with every seed" : ""));
      return say_distance();
    }
    say(sentence + against(*first, *rival));
    if (second != rival && second != nullptr) say_runner_up(*first, *second);
    say_distance();
  }

  // Rows that ended with the same bits need no interval to be called alike.
  void say_identical() {
    std::vector<bool> is_said(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (is_said[i]) continue;
      std::vector<std::string> names = {named(rows_[i])};
      bool in_the_same_time = true;
      for (std::size_t other = i + 1; other < rows_.size(); ++other) {
        if (is_said[other] || !have_same_weights(rows_[i], rows_[other])) continue;
        is_said[other] = true;
        names.push_back(named(rows_[other]));
        in_the_same_time &= are_identical(rows_[i], rows_[other]);
      }
      if (names.size() < 2) continue;
      say(listed(names) + " ended with the same weights, bit for bit" +
          (in_the_same_time ? ", after the same time" : ""));
    }
  }

  std::string against(const VariantSummary& first, const VariantSummary& rival) const {
    const auto later = time_ratio(rival, first);
    const std::string rival_time = time_of(rival) + interval_of(later);
    if (later && !later->is_significant()) {
      const std::string begin = " soonest, in " + time_of(first) + ", but ";
      if (!later->has_spread || !later->is_bounded()) {
        return begin + "evaluations are too far apart to tell it from " + named(rival) + " (" +
               rival_time + ")";
      }
      return begin + "not significantly sooner than " + named(rival) + " (" + rival_time + ")";
    }
    const std::string how_much =
        later ? factor_text(later->value) + " sooner than " : "sooner than ";
    return " in " + time_of(first) + ", " + how_much + named(rival) + " (" + rival_time + ")";
  }

  void say_runner_up(const VariantSummary& first, const VariantSummary& second) {
    const auto later = time_ratio(second, first);
    std::string sentence = "Next came " + named(second) + " in " + time_of(second);
    if (later && !later->is_significant()) {
      const std::string interval = interval_of(later);
      sentence += interval.empty()
                      ? ", which is no later than evaluations can tell"
                      : ", which is not significantly later (" + interval.substr(2) + ")";
    }
    say(sentence);
  }

  // "1.4 points (95 % interval 1.0 to 1.8)", of a significant difference, without its sign.
  static std::string size_of(const Difference& difference) {
    const Interval& interval = difference.interval;
    const std::string text = points_text(std::abs(difference.value)) + " points";
    if (interval.low == interval.high) return text;
    const double low = std::min(std::abs(interval.low), std::abs(interval.high));
    const double high = std::max(std::abs(interval.low), std::abs(interval.high));
    return text + " (95 % interval " + points_text(low) + " to " + points_text(high) + ")";
  }

  void say_accuracy() {
    const VariantSummary& base = *reference(rows_);
    std::vector<std::string> found;
    std::vector<std::string> alike;
    std::vector<std::string> plain;
    for (const VariantSummary& row : rows_) {
      if (&row == &base || !row.accuracy || have_same_weights(row, base)) continue;
      const auto gain = difference(row, base, &VariantSummary::accuracy);
      if (!gain) {
        plain.push_back(named(row) + " at " + accuracy_of(row));
      } else if (gain->is_significant()) {
        found.push_back(named(row) + (gain->value < 0.0 ? " lost " : " gained ") + size_of(*gain));
      } else {
        alike.push_back(named(row));
      }
    }
    if (!found.empty()) {
      say("Against the final accuracy of " + named(base) + " (" + accuracy_of(base) + "), " +
          listed(found));
    }
    if (!alike.empty()) {
      say("The final " + std::string(alike.size() == 1 ? "accuracy of " : "accuracies of ") +
          listed(alike) + (alike.size() == 1 ? " does" : " do") +
          " not differ significantly from that of " + named(base) +
          (found.empty() ? " (" + accuracy_of(base) + ")" : ""));
    }
    if (!plain.empty()) {
      say("At the end stood " + named(base) + " at " + accuracy_of(base) + ", " + listed(plain));
    }
  }

  // What the budget and the learning rate do, before the strategy is given the blame.
  void say_batches() {
    const auto [fewest, most] = batches_at_one_rate(rows_);
    if (fewest == nullptr) return;
    const auto work_of = [](const VariantSummary& row) {
      return decimal_text(row.updates->mean, 0) + " updates of " + decimal_text(*row.batch(), 0) +
             " samples";
    };
    std::string sentence = "At one learning rate (" + exact_text(most->learning_rate->mean) + ") " +
                           named(*most) + " made " + work_of(*most) + ", " + named(*fewest) + " " +
                           work_of(*fewest);
    if (most->samples->mean > kAlike * fewest->samples->mean ||
        fewest->samples->mean > kAlike * most->samples->mean) {
      sentence += " (" + decimal_text(most->samples->mean, 0) + " and " +
                  decimal_text(fewest->samples->mean, 0) + " samples in all)";
    }
    say(sentence + ": accuracies may differ for that reason alone, whatever the strategy");
  }

  void say_unreached() {
    std::vector<std::string> never;
    for (const VariantSummary& row : rows_) {
      if (row.done > 0 && row.reached == 0) never.push_back(named(row));
    }
    if (!never.empty()) say(listed(never) + " never reached " + target());
    for (const VariantSummary& row : rows_) {
      if (row.reached == 0 || row.reached == row.ended()) continue;
      say(named(row) + " reached " + target() + " with " + std::to_string(row.reached) + " of " +
          count_text(row.ended(), "seed") + " only");
    }
  }

  void say_unfinished() {
    std::vector<std::string> pending;
    for (const VariantSummary& row : rows_) {
      if (row.pending > 0)
        pending.push_back(named(row) + " (" + count_text(row.pending, "run") + ")");
      if (row.failed == 0) continue;
      const std::string share =
          row.failed == row.ended()
              ? "every time"
              : count_text(row.failed, "time") + " of " + std::to_string(row.ended());
      say(named(row) + " failed " + share + " (" + shortened(row.failures.front(), 160) + ")");
    }
    if (!pending.empty()) say("Still pending: " + listed(pending));
  }

  void say_seeds() {
    const int fewest = fewest_seeds(rows_);
    if (fewest == 1) {
      say("With one seed nothing can be said about spread: differences may be chance");
    } else if (fewest < kEnoughSeeds) {
      say("With two seeds intervals are wide; three or more are advised");
    }
  }

  const Comparison& comparison_;
  const Rows rows_;
  std::string text_;
};

}  // namespace

std::string verdict(const Comparison& comparison) { return Verdict(comparison).write(); }

}  // namespace syncopate::bench
