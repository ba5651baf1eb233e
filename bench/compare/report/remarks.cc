#include "bench/compare/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "bench/compare/report/evidence.h"
#include "bench/compare/report/reported_faults.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

class RemarkWriter {
 public:
  RemarkWriter(const Comparison& comparison, const Rows& rows)
      : comparison_(comparison), rows_(rows) {}

  std::vector<std::string> write() {
    add_unfinished();
    if (reference(rows_) == nullptr) return sentences_;
    if (comparison_.target_accuracy) add_late_faults();
    if (comparison_.target_accuracy) add_unreached();
    add_guessing();
    add_machines();
    add_accuracy();
    add_identical();
    add_batches();
    if (comparison_.target_accuracy) add_precision();
    return sentences_;
  }

 private:
  void add(const std::string& sentence) { sentences_.push_back(sentence + "."); }

  std::string target() const { return percent_text(*comparison_.target_accuracy); }

  void add_unfinished() {
    std::vector<std::string> pending;
    for (const VariantSummary& row : rows_) {
      if (row.pending > 0) {
        pending.push_back(fmt::format("{} ({})", named(row), count_text(row.pending, "run")));
      }
      if (row.failed == 0) continue;
      const std::string share =
          row.failed == row.ended()
              ? "every time"
              : fmt::format("{} of {}", count_text(row.failed, "time"), row.ended());
      add(fmt::format("{} failed {} ({})", named(row), share,
                      shortened(row.failures.front(), 160)));
    }
    if (!pending.empty()) add("Still pending: " + listed(pending));
  }

  void add_late_faults() {
    for (const LateFault& fault : late_faults(comparison_)) {
      std::vector<std::string> names;
      for (const std::size_t row : fault.rows) names.push_back(named(rows_[row]));
      const std::string what = describe_faults(fault.flag + " " + fault.value);
      if (fault.is_for_all) {
        add(fmt::format("No time to the target shows the effect of {}: {} was reached before", what,
                        target()));
      } else {
        add(fmt::format(
            "The {} of {} to the target {} not show the effect of {}: {} was reached before",
            names.size() == 1 ? "time" : "times", listed(names), names.size() == 1 ? "does" : "do",
            what, target()));
      }
    }
  }

  void add_unreached() {
    std::vector<std::string> never;
    for (const VariantSummary& row : rows_) {
      if (row.done > 0 && row.reached == 0) never.push_back(named(row));
    }
    if (!never.empty()) add(fmt::format("{} never reached {}", listed(never), target()));
    for (const VariantSummary& row : rows_) {
      if (row.reached == 0 || row.reached == row.ended()) continue;
      add(fmt::format("{} reached {} with {} of {} only", named(row), target(), row.reached,
                      count_text(row.ended(), "seed")));
    }
  }

  // Names the variants that are no more accurate than guessing. If all variants are, the
  // recommendation says so and this remark is left out.
  void add_guessing() {
    if (choices(rows_, comparison_.chance).empty()) return;
    std::vector<std::string> guessing;
    for (const VariantSummary& row : rows_) {
      if (row.is_at_chance(comparison_.chance)) {
        guessing.push_back(fmt::format("{} ({})", named(row), accuracy_of(row)));
      }
    }
    if (guessing.empty()) return;
    const auto& chance = comparison_.chance;
    add(fmt::format("{} ended no better than guessing{}", listed(guessing),
                    chance ? ", which may reach " + percent_text(chance->limit()) : ""));
  }

  void add_machines() {
    if (comparison_.has_virtual_clock || comparison_.machines.size() < 2) return;
    add(fmt::format("Runs were made on {} machines or versions, whose times cannot be compared",
                    comparison_.machines.size()));
  }

  // Compares the final accuracy of each row with that of the first row.
  void add_accuracy() {
    const VariantSummary& base = *reference(rows_);
    std::vector<std::string> apart;
    std::vector<std::string> plain;
    bool has_others = false;
    for (const VariantSummary& row : rows_) {
      if (&row == &base || !row.accuracy || have_same_weights(row, base)) continue;
      has_others = true;
      const auto gain = difference(row, base, &VariantSummary::accuracy);
      if (!gain) {
        plain.push_back(fmt::format("{} {}", named(row), accuracy_of(row)));
      } else if (gain->is_significant()) {
        apart.push_back(fmt::format("{} {} {} points ({})", named(row),
                                    gain->value < 0.0 ? "lost" : "gained",
                                    points_text(std::abs(gain->value)), interval_words(*gain)));
      }
    }
    if (!plain.empty()) {
      add(fmt::format("Final accuracies, from too few seeds to tell them apart: {} {}, {}",
                      named(base), accuracy_of(base), listed(plain)));
    } else if (!apart.empty()) {
      add(
          fmt::format("Compared with the final accuracy of {} ({}), {}; no other differs "
                      "significantly from it",
                      named(base), accuracy_of(base), listed(apart)));
    } else if (has_others) {
      add(fmt::format("No final accuracy differs significantly from that of {} ({})", named(base),
                      accuracy_of(base)));
    }
  }

  // Names the groups of rows that ended with equal weights.
  void add_identical() {
    std::set<std::size_t> grouped;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (grouped.contains(i)) continue;
      std::vector<std::string> names = {named(rows_[i])};
      bool has_equal_times = true;
      for (std::size_t other = i + 1; other < rows_.size(); ++other) {
        if (grouped.contains(other) || !have_same_weights(rows_[i], rows_[other])) continue;
        grouped.insert(other);
        names.push_back(named(rows_[other]));
        has_equal_times &= are_identical(rows_[i], rows_[other]);
      }
      if (names.size() < 2) continue;
      add(fmt::format("{} ended with the same weights, bit for bit{}", listed(names),
                      has_equal_times ? ", after the same time" : ""));
    }
  }

  // Different batches at one learning rate explain a difference in accuracy without the strategy.
  void add_batches() {
    constexpr double kAlike = 1.1;  // ratio of sample counts that needs no mention
    const auto [fewest, most] = batches_at_one_rate(rows_);
    if (fewest == nullptr) return;
    const auto work_of = [](const VariantSummary& row) {
      return fmt::format("{} made {} updates of {} samples", named(row),
                         decimal_text(row.updates->mean, 0), decimal_text(*row.batch(), 0));
    };
    std::string totals;
    if (most->samples->mean > kAlike * fewest->samples->mean ||
        fewest->samples->mean > kAlike * most->samples->mean) {
      totals = fmt::format(" ({} and {} samples in all)", decimal_text(most->samples->mean, 0),
                           decimal_text(fewest->samples->mean, 0));
    }
    add(fmt::format(
        "With the same learning rate ({}), {} and {}{}: accuracies may differ for that "
        "reason alone, whatever the strategy",
        exact_text(most->learning_rate->mean), work_of(*most), work_of(*fewest), totals));
  }

  // The distance between evaluations bounds the precision of every time to the target.
  void add_precision() {
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
    add(
        fmt::format("A time to the target is that of the first evaluation that reached it, and "
                    "evaluations are {} apart",
                    low == high ? high : fmt::format("{} to {}", low, high)));
  }

  const Comparison& comparison_;
  const Rows& rows_;
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> remarks(const Comparison& comparison, const Rows& rows) {
  return RemarkWriter(comparison, rows).write();
}

}  // namespace syncopate::bench
