#include "bench/compare/report/verdict.h"

#include <algorithm>
#include <cmath>

#include "bench/compare/report/findings.h"
#include "bench/compare/report/recommendation.h"
#include "bench/compare/report/text.h"
#include "bench/compare/report/wording.h"

namespace syncopate::bench {
namespace {

constexpr int kEnoughSeeds = 3;

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
    if (comparison_.target_accuracy) say_time();
    say_accuracy();
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

  // "", or how sure the difference in time is.
  std::string interval_of(const std::optional<Difference>& difference) const {
    if (!difference) return "";
    const Interval& interval = difference->interval;
    if (interval.low == interval.high) return ", the same with every seed";
    return "; 95 % interval of the difference " + interval_text(interval.low, interval.high) + " s";
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
      say(sentence + " in " + time_of(*first) +
          (rows_.size() > 1 ? ", the only one to do so with every seed" : ""));
      return;
    }
    say(sentence + against(*first, *rival));
    if (second != rival) say_runner_up(*first, *second);
  }

  std::string against(const VariantSummary& first, const VariantSummary& rival) const {
    const auto later = difference(rival, first, &VariantSummary::seconds_to_target);
    const std::string rival_time = time_of(rival) + interval_of(later);
    const double factor = rival.seconds_to_target->mean / first.seconds_to_target->mean;
    if (later && !later->is_significant()) {
      return " soonest, in " + time_of(first) + ", but not significantly sooner than " +
             named(rival) + " (" + rival_time + ")";
    }
    const std::string how_much =
        std::isfinite(factor) ? factor_text(factor) + " sooner than " : "sooner than ";
    return " in " + time_of(first) + ", " + how_much + named(rival) + " (" + rival_time + ")";
  }

  void say_runner_up(const VariantSummary& first, const VariantSummary& second) {
    const auto later = difference(second, first, &VariantSummary::seconds_to_target);
    std::string sentence = "Next came " + named(second) + " in " + time_of(second);
    if (later && !later->is_significant()) {
      sentence += ", which is not significantly later (" + interval_of(later).substr(2) + ")";
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
      if (&row == &base || !row.accuracy) continue;
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
