#include "bench/compare/report/verdict.h"

#include <cmath>

#include "bench/compare/report/findings.h"
#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

constexpr int kEnoughSeeds = 3;

// "A", "A and B", "A, B and C".
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

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
    say_recommendation();
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
      words += (words.empty() ? "with " : ", with ") + comparison_.trouble;
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
      say(setting() + "no variant reached " + target() + " with every seed");
      return;
    }
    std::string sentence = setting() + first->name + " reached " + target();
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
             rival.name + " (" + rival_time + ")";
    }
    const std::string how_much =
        std::isfinite(factor) ? factor_text(factor) + " sooner than " : "sooner than ";
    return " in " + time_of(first) + ", " + how_much + rival.name + " (" + rival_time + ")";
  }

  void say_runner_up(const VariantSummary& first, const VariantSummary& second) {
    const auto later = difference(second, first, &VariantSummary::seconds_to_target);
    std::string sentence = "Next came " + second.name + " in " + time_of(second);
    if (later && !later->is_significant()) {
      sentence += ", which is not significantly later (" + interval_of(later).substr(2) + ")";
    }
    say(sentence);
  }

  // "1.4 points (95 % interval 1.0 to 1.8)", of a significant difference, without its sign.
  static std::string size_of(const Difference& difference) {
    const double sign = difference.value < 0.0 ? -1.0 : 1.0;
    const double ends[] = {100.0 * sign * difference.interval.low,
                           100.0 * sign * difference.interval.high};
    std::string text = points_text(sign * difference.value) + " points";
    if (ends[0] == ends[1]) return text;
    return text + " (95 % interval " +
           interval_text(std::min(ends[0], ends[1]), std::max(ends[0], ends[1])) + ")";
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
        plain.push_back(row.name + " at " + percent_text(row.accuracy->mean));
      } else if (gain->is_significant()) {
        found.push_back(row.name + (gain->value < 0.0 ? " lost " : " gained ") + size_of(*gain));
      } else {
        alike.push_back(row.name);
      }
    }
    if (!found.empty()) {
      say("Against the final accuracy of " + base.name + " (" + percent_text(base.accuracy->mean) +
          "), " + listed(found));
    }
    if (!alike.empty()) {
      say("The final " + std::string(alike.size() == 1 ? "accuracy of " : "accuracies of ") +
          listed(alike) + (alike.size() == 1 ? " does" : " do") +
          " not differ significantly from that of " + base.name +
          (found.empty() ? " (" + percent_text(base.accuracy->mean) + ")" : ""));
    }
    if (!plain.empty()) {
      say("At the end stood " + base.name + " at " + percent_text(base.accuracy->mean) + ", " +
          listed(plain));
    }
  }

  void say_unreached() {
    std::vector<std::string> never;
    for (const VariantSummary& row : rows_) {
      if (row.done > 0 && row.reached == 0) never.push_back(row.name);
    }
    if (!never.empty()) say(listed(never) + " never reached " + target());
    for (const VariantSummary& row : rows_) {
      if (row.reached == 0 || row.reached == row.ended()) continue;
      say(row.name + " reached " + target() + " with " + std::to_string(row.reached) + " of " +
          count_text(row.ended(), "seed") + " only");
    }
  }

  void say_unfinished() {
    std::vector<std::string> pending;
    for (const VariantSummary& row : rows_) {
      if (row.pending > 0)
        pending.push_back(row.name + " (" + count_text(row.pending, "run") + ")");
      if (row.failed == 0) continue;
      const std::string share =
          row.failed == row.ended()
              ? "every time"
              : count_text(row.failed, "time") + " of " + std::to_string(row.ended());
      say(row.name + " failed " + share + " (" + shortened(row.failures.front(), 160) + ")");
    }
    if (!pending.empty()) say("Still pending: " + listed(pending));
  }

  void say_seeds() {
    const int fewest = fewest_seeds(rows_);
    if (fewest == 1) {
      say("Where a variant has one seed only, nothing can be said about spread: differences may "
          "be chance");
    } else if (fewest < kEnoughSeeds) {
      say("Two seeds make wide intervals; three or more are advised");
    }
  }

  void say_recommendation();
  void recommend_by_time(const Rows& pool, const VariantSummary& first);
  void recommend_by_accuracy(const Rows& pool);

  const Comparison& comparison_;
  const Rows rows_;
  std::string text_;
};

void Verdict::say_recommendation() {
  if (rows_.size() < 2) {
    say("There is nothing to compare it with, so nothing is recommended");
    return;
  }
  // Who failed or is not done yet is not recommended while there is somebody else.
  Rows complete;
  for (const VariantSummary& row : rows_) {
    if (row.is_complete()) complete.push_back(row);
  }
  const Rows& pool = complete.empty() ? rows_ : complete;
  if (const VariantSummary* first = fastest(pool)) {
    recommend_by_time(pool, *first);
  } else {
    recommend_by_accuracy(pool);
  }
}

void Verdict::recommend_by_time(const Rows& pool, const VariantSummary& first) {
  std::string sentence =
      "Recommended" + std::string(first.done == 1 ? ", on the evidence of one seed, is " : " is ") +
      first.name + ", the soonest at " + target();
  std::vector<std::string> equals;
  for (const VariantSummary* row : as_fast_as(pool, first)) equals.push_back(row->name);
  if (!equals.empty())
    sentence += "; " + listed(equals) + " may be as fast for all these runs tell";
  const VariantSummary* best = most_accurate(pool);
  const auto gain = difference(*best, first, &VariantSummary::accuracy);
  if (gain && gain->is_significant()) {
    sentence += "; where the final accuracy counts more than time, " + best->name + ", " +
                points_text(gain->value) + " points better";
  }
  say(sentence);
}

void Verdict::recommend_by_accuracy(const Rows& pool) {
  const VariantSummary* best = most_accurate(pool);
  if (best == nullptr) return;
  say("By final accuracy alone the choice would be " + best->name + " (" +
      percent_text(best->accuracy->mean) + ")" +
      (comparison_.target_accuracy ? "; a larger budget may show who reaches " + target() : ""));
}

}  // namespace

std::string verdict(const Comparison& comparison) { return Verdict(comparison).write(); }

}  // namespace syncopate::bench
