#include "bench/compare/report/remarks.h"

#include <algorithm>
#include <limits>
#include <set>

#include "bench/compare/report/late_trouble.h"
#include "bench/compare/report/text.h"
#include "bench/compare/report/wording.h"

namespace syncopate::bench {
namespace {

constexpr double kAlike = 1.1;  // samples that are about as many

class Remarks {
 public:
  Remarks(const Comparison& comparison, const Rows& rows) : comparison_(comparison), rows_(rows) {}

  std::vector<std::string> write() {
    say_unfinished();
    if (reference(rows_) == nullptr) return said_;
    if (comparison_.target_accuracy) say_late_trouble();
    if (comparison_.target_accuracy) say_unreached();
    say_guessing();
    say_machines();
    say_accuracy();
    say_identical();
    say_batches();
    if (comparison_.target_accuracy) say_distance();
    return said_;
  }

 private:
  void say(const std::string& sentence) { said_.push_back(sentence + "."); }

  std::string target() const { return percent_text(*comparison_.target_accuracy); }

  void say_late_trouble() {
    for (const LateTrouble& trouble : late_trouble(comparison_)) {
      std::vector<std::string> names;
      for (const std::size_t row : trouble.rows) names.push_back(named(rows_[row]));
      const std::string what = trouble_words(trouble.flag + " " + trouble.value);
      if (trouble.is_for_all) {
        say("No time to the target shows " + what + ": by then " + target() + " was reached");
      } else {
        say("The " + std::string(names.size() == 1 ? "time of " : "times of ") + listed(names) +
            " to the target " + (names.size() == 1 ? "does" : "do") + " not show " + what +
            ": by then " + target() + " was reached there");
      }
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

  // Where others did better; where none did, the recommendation says why there is none.
  void say_guessing() {
    if (choices(rows_, comparison_.chance).empty()) return;
    std::vector<std::string> guessing;
    for (const VariantSummary& row : rows_) {
      if (row.is_at_chance(comparison_.chance)) {
        guessing.push_back(named(row) + " (" + accuracy_of(row) + ")");
      }
    }
    if (guessing.empty()) return;
    say(listed(guessing) + " ended no better than guessing" +
        (comparison_.chance ? ", which may reach " + percent_text(comparison_.chance->limit())
                            : ""));
  }

  void say_machines() {
    if (comparison_.has_virtual_clock || comparison_.machines.size() < 2) return;
    say("Runs were made on " + std::to_string(comparison_.machines.size()) +
        " machines or versions, whose times do not compare");
  }

  // Against the first row.
  void say_accuracy() {
    const VariantSummary& base = *reference(rows_);
    std::vector<std::string> apart;
    std::vector<std::string> plain;
    bool has_others = false;
    for (const VariantSummary& row : rows_) {
      if (&row == &base || !row.accuracy || have_same_weights(row, base)) continue;
      has_others = true;
      const auto gain = difference(row, base, &VariantSummary::accuracy);
      if (!gain) {
        plain.push_back(named(row) + " " + accuracy_of(row));
      } else if (gain->is_significant()) {
        apart.push_back(named(row) + (gain->value < 0.0 ? " lost " : " gained ") +
                        points_text(std::abs(gain->value)) + " points (" + interval_words(*gain) +
                        ")");
      }
    }
    if (!plain.empty()) {
      say("Final accuracies, of too few seeds to tell them apart: " + named(base) + " " +
          accuracy_of(base) + ", " + listed(plain));
    } else if (!apart.empty()) {
      say("Against the final accuracy of " + named(base) + " (" + accuracy_of(base) + "), " +
          listed(apart) + "; no other differs significantly from it");
    } else if (has_others) {
      say("No final accuracy differs significantly from that of " + named(base) + " (" +
          accuracy_of(base) + ")");
    }
  }

  // Rows that ended with the same bits need no interval to be called alike.
  void say_identical() {
    std::set<std::size_t> told;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (told.contains(i)) continue;
      std::vector<std::string> names = {named(rows_[i])};
      bool in_the_same_time = true;
      for (std::size_t other = i + 1; other < rows_.size(); ++other) {
        if (told.contains(other) || !have_same_weights(rows_[i], rows_[other])) continue;
        told.insert(other);
        names.push_back(named(rows_[other]));
        in_the_same_time &= are_identical(rows_[i], rows_[other]);
      }
      if (names.size() < 2) continue;
      say(listed(names) + " ended with the same weights, bit for bit" +
          (in_the_same_time ? ", after the same time" : ""));
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
    say("A time to the target is that of the first evaluation there, " +
        (low == high ? high : low + " to " + high) + " after the one before, and no surer");
  }

  const Comparison& comparison_;
  const Rows& rows_;
  std::vector<std::string> said_;
};

}  // namespace

std::vector<std::string> remarks(const Comparison& comparison, const Rows& rows) {
  return Remarks(comparison, rows).write();
}

}  // namespace syncopate::bench
