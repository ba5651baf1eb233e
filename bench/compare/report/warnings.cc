#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "bench/compare/report/machine.h"
#include "bench/compare/report/reported_faults.h"
#include "bench/compare/report/verdict.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Collects the warnings of a comparison, the most important first.
class WarningWriter {
 public:
  WarningWriter(const Comparison& comparison, const Rows& rows)
      : comparison_(comparison), rows_(rows) {}

  std::vector<Warning> write() {
    add_unfinished();
    add_disturbed();
    if (auto warning = uneven_machine(comparison_, rows_)) warnings_.push_back(*warning);
    add_unsteady();
    add_close_claims();
    add_shared_cpus();
    add_seeds();
    add_not_numbers();
    add_guessing();
    if (comparison_.target_accuracy) {
      add_unreached();
      add_late_faults();
    }
    add_machines();
    add_rates();
    add_occasion();
    if (comparison_.target_accuracy) add_precision();
    return std::move(warnings_);
  }

 private:
  void add(std::string subject, std::string text) {
    warnings_.push_back({std::move(subject), std::move(text)});
  }

  // Returns the names of the rows for which `holds` is true.
  template <typename Predicate>
  std::vector<std::string> names_of(Predicate holds) const {
    std::vector<std::string> names;
    for (const VariantSummary& row : rows_) {
      if (holds(row)) names.push_back(named(row));
    }
    return names;
  }

  std::string target() const { return percent_text(*comparison_.target_accuracy); }

  void add_unfinished() {
    std::vector<std::string> pending;
    std::vector<std::string> failed;
    for (const VariantSummary& row : rows_) {
      if (row.pending > 0) {
        pending.push_back(fmt::format("{} ({})", named(row), count_text(row.pending, "run")));
      }
      if (row.failed == 0) continue;
      failed.push_back(fmt::format("{}: {} of {} ({})", named(row), row.failed,
                                   count_text(row.ended(), "run"),
                                   shortened(row.failures.front(), 160)));
    }
    if (!failed.empty()) add("failed runs", listed(failed));
    if (!pending.empty()) add("missing runs", "not yet trained: " + listed(pending));
  }

  void add_disturbed() {
    const auto names = names_of([](const VariantSummary& row) { return row.disturbed > 0; });
    if (names.empty()) return;
    add("busy machine",
        fmt::format(
            "other programs took up to {} % of the CPUs during runs of {}; nothing is "
            "claimed from these rows, and no speed-up over or of them is shown: variants with more "
            "processes get more of a busy machine, so times favour them. Repeat the "
            "command with --report of this folder on a quiet machine",
            decimal_text(100.0 * most_disturbance(rows_), 0),
            names.size() == rows_.size() ? "all rows" : listed(names)));
  }

  // Names the rows whose runs differ much in speed: their mean is that of no run, and a claim about
  // their time needs a much larger difference than between steady rows.
  void add_unsteady() {
    constexpr double kUnsteady = 1.5;  // ratio of the samples/s of two runs of a row
    std::vector<std::string> unsteady;
    for (const VariantSummary& row : rows_) {
      if (row.done < 2 || row.disturbed > 0 || !row.samples_per_second) continue;
      const auto [least, most] = std::ranges::minmax(row.samples_per_second->values);
      if (!(most >= kUnsteady * least)) continue;
      unsteady.push_back(fmt::format("{} from {} to {}", named(row), decimal_text(least, 0),
                                     decimal_text(most, 0)));
    }
    if (unsteady.empty()) return;
    add("unsteady speed",
        fmt::format("the samples/s of runs of one row differ: {}; what is said about the time of "
                    "{} says little about {} speed on a steady machine",
                    listed(unsteady), unsteady.size() == 1 ? "this row" : "these rows",
                    unsteady.size() == 1 ? "its" : "their"));
  }

  // Names the claims that Welch's test of the times alone would not make.
  void add_close_claims() {
    const Claims claims(rows_);
    std::vector<std::string> pairs;
    for (const PairDifference& pair : claims.all()) {
      if (!pair.is_claimed() || pair.welch_adjusted_p <= kFamilyLevel) continue;
      const std::size_t sooner = pair.value < 0.0 ? pair.a : pair.b;
      const std::size_t later = sooner == pair.a ? pair.b : pair.a;
      pairs.push_back(fmt::format("{} before {} (adjusted p = {:.2g} in place of {:.2g})",
                                  named(rows_[sooner]), named(rows_[later]), pair.welch_adjusted_p,
                                  pair.adjusted_p));
    }
    if (pairs.empty()) return;
    add("close claims",
        fmt::format("without the distance between evaluations, whose known size makes the test "
                    "more certain, Welch's test does not show {}",
                    listed(pairs)));
  }

  void add_shared_cpus() {
    const auto use = cpu_use(comparison_);
    if (!use || !use->is_shared) return;
    add("shared CPUs",
        use->words + ": with a CPU for each thread, times and their order may differ");
  }

  void add_seeds() {
    const int needed = comparison_.target_accuracy ? kSeedsForTime : kSeedsForAccuracy;
    std::vector<std::string> few;
    for (const VariantSummary& row : rows_) {
      if (row.done == 0 || row.done >= needed) continue;
      few.push_back(fmt::format("{} ({})", named(row), count_text(row.done, "seed")));
    }
    if (few.empty()) return;
    const int seeds = rows_.front().done;
    const bool are_all =
        few.size() == rows_.size() &&
        std::ranges::all_of(rows_, [&](const auto& row) { return row.done == seeds; });
    add("few seeds", fmt::format("{}: claims need at least {} for accuracy and {} for time",
                                 are_all ? count_text(seeds, "seed") : listed(few),
                                 kSeedsForAccuracy, kSeedsForTime));
  }

  void add_not_numbers() {
    std::vector<std::string> counts;
    for (const VariantSummary& row : rows_) {
      if (row.not_numbers() == 0) continue;
      counts.push_back(
          fmt::format("{} ({} of {})", named(row), row.not_numbers(), count_text(row.done, "run")));
    }
    if (!counts.empty()) {
      add("not a number", "the final accuracy is not a number in runs of " + listed(counts));
    }
  }

  // Names the variants at chance level if another variant did better. Otherwise the recommendation
  // has this fact.
  void add_guessing() {
    if (choices(rows_, comparison_.chance).empty()) return;
    std::vector<std::string> guessing;
    for (const VariantSummary& row : rows_) {
      if (!row.is_at_chance(comparison_.chance)) continue;
      guessing.push_back(fmt::format("{} ({})", named(row), accuracy_of(row)));
    }
    if (guessing.empty()) return;
    add("no learning", fmt::format("{} ended no better than guessing, which may reach {}",
                                   listed(guessing), percent_text(comparison_.chance->limit())));
  }

  void add_unreached() {
    std::vector<std::string> counts;
    for (const VariantSummary& row : rows_) {
      if (row.done == 0 || row.reached == row.ended()) continue;
      counts.push_back(fmt::format("{} with {} of {}{}", named(row), row.reached,
                                   count_text(row.ended(), "seed"),
                                   row.failed > 0 ? fmt::format(" ({} failed)", row.failed) : ""));
    }
    if (counts.empty()) return;
    const auto has_reached = [](const VariantSummary& row) { return row.reached > 0; };
    if (std::ranges::none_of(rows_, has_reached)) {
      return add("target missed", target() + " was reached by no run");
    }
    add("target missed",
        fmt::format("{} was reached by {}; nothing is claimed about the times of these rows",
                    target(), listed(counts)));
  }

  void add_late_faults() {
    for (const LateFault& fault : late_faults(comparison_)) {
      std::vector<std::string> names;
      for (const std::size_t row : fault.rows) names.push_back(named(rows_[row]));
      const std::string what = describe_faults(fault.flag + " " + fault.value);
      add("late fault",
          fault.is_for_all
              ? fmt::format("no time to {} shows the effect of {}, which came later", target(),
                            what)
              : fmt::format("the time of {} to {} does not show the effect of {}, which came later",
                            listed(names), target(), what));
    }
  }

  void add_machines() {
    if (comparison_.has_virtual_clock || comparison_.machines.size() < 2) return;
    add("several machines",
        fmt::format("the runs were made on {} machines or versions, whose times cannot be compared",
                    comparison_.machines.size()));
  }

  // Different batches at one learning rate explain a difference without the strategy.
  void add_rates() {
    constexpr double kApart = 1.5;      // ratio of batches from which the rate matters
    constexpr double kSameRate = 1.05;  // ratio of rates that count as one
    const VariantSummary* fewest = nullptr;
    const VariantSummary* most = nullptr;
    double lowest_rate = std::numeric_limits<double>::infinity();
    double highest_rate = 0.0;
    for (const VariantSummary& row : rows_) {
      if (!row.batch()) continue;
      if (!row.learning_rate) return;
      lowest_rate = std::min(lowest_rate, row.learning_rate->mean);
      highest_rate = std::max(highest_rate, row.learning_rate->mean);
      if (fewest == nullptr || *row.batch() < *fewest->batch()) fewest = &row;
      if (most == nullptr || *row.batch() > *most->batch()) most = &row;
    }
    const bool is_scaled =
        !comparison_.learning_rate_rule.empty() && comparison_.learning_rate_rule != "none";
    if (fewest == nullptr || is_scaled || highest_rate > kSameRate * lowest_rate ||
        *most->batch() < kApart * *fewest->batch()) {
      return;
    }
    const auto work_of = [](const VariantSummary& row) {
      return fmt::format("{} made {} updates of {} samples", named(row),
                         decimal_text(row.updates->mean, 0), decimal_text(*row.batch(), 0));
    };
    add("one learning rate",
        fmt::format("at {}, {} and {}: times and accuracies may differ for that reason alone, "
                    "whatever the strategy",
                    exact_text(most->learning_rate->mean), work_of(*most), work_of(*fewest)));
  }

  // Returns the number of occasions on which the runs were made, divided by pauses of more than six
  // hours. Runs of unknown time count as made on the first one.
  int occasions() const {
    constexpr double kPause = 6.0 * 3600.0;  // seconds
    std::map<double, double> ends;           // by begin
    for (const ComparedVariant& variant : comparison_.variants) {
      for (const ComparedRun& run : variant.runs) {
        if (!run.is_done() || !run.result->began_at) continue;
        ends[*run.result->began_at] = *run.result->began_at + run.result->summary.seconds;
      }
    }
    int count = 1;
    double last = std::numeric_limits<double>::infinity();
    for (const auto& [begin, end] : ends) {
      if (begin > last + kPause) ++count;
      last = std::isfinite(last) ? std::max(last, end) : end;
    }
    return count;
  }

  // The seeds of one occasion do not show how a result that depends on timing varies over
  // occasions.
  void add_occasion() {
    if (comparison_.has_virtual_clock) return;
    const std::string network =
        "without a network between workers (they use shared memory and loopback sockets)";
    const bool are_several = comparison_.machines.size() > 1;  // which another warning says
    const int count = occasions();
    if (are_several || count > 1) {
      return add("no network",
                 fmt::format("all times are {}{}{}", are_several ? "" : "of one machine, ", network,
                             count == 1 ? ""
                                        : fmt::format(", on {} occasions: between rows that were "
                                                      "trained on different ones, a difference may "
                                                      "be that of the machine",
                                                      count)));
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const bool depends_on_timing = comparison_.variants[i].depends_on_timing.value_or(
          rows_[i].kind == Kind::kAsynchronous ||
          rows_[i].label.find("+backup") != std::string::npos);
      if (depends_on_timing && rows_[i].done > 0) names.push_back(named(rows_[i]));
    }
    add("one occasion",
        fmt::format("all times are of one machine, {}, on one occasion{}", network,
                    names.empty()
                        ? ""
                        : fmt::format(", and so are the accuracies of {}: which gradients "
                                      "an update takes depends on timing, and the "
                                      "deviations do not include how that varies from "
                                      "day to day",
                                      listed(names))));
  }

  // The distance between evaluations bounds the precision of every time to the target.
  void add_precision() {
    double least = std::numeric_limits<double>::infinity();
    double most = 0.0;
    std::int64_t fewest_samples = std::numeric_limits<std::int64_t>::max();
    std::int64_t most_samples = 0;
    for (const VariantSummary& row : rows_) {
      if (!row.seconds_to_target) continue;
      for (std::size_t i = 0; i < row.reached_gaps.size(); ++i) {
        least = std::min(least, row.reached_gaps[i]);
        most = std::max(most, row.reached_gaps[i]);
        fewest_samples = std::min(fewest_samples, row.reached_gap_samples[i]);
        most_samples = std::max(most_samples, row.reached_gap_samples[i]);
      }
    }
    if (!(most > 0.0)) return;
    const std::string unit = comparison_.has_virtual_clock ? " virtual s" : " s";
    const auto range = [](const std::string& low, const std::string& high) {
      return low == high ? high : fmt::format("{} to {}", low, high);
    };
    const auto samples_text = [](std::int64_t samples) {
      return decimal_text(static_cast<double>(samples), 0);
    };
    add("evaluations",
        fmt::format(
            "a time to the target is that of the first evaluation that reached it; the previous "
            "one was {} ({} samples) earlier, depending on the run{}.{} At another "
            "target the order may be another",
            range(short_text(least) + unit, short_text(most) + unit),
            range(samples_text(fewest_samples), samples_text(most_samples)),
            std::ranges::count_if(rows_, has_claimable_time) > 1 ? "; the intervals include this"
                                                                 : ", which +- shows in part only",
            fallen_words()));
  }

  // Returns " 3 runs fell below 95 % again later (1 of a and 2 of b)."; "" if there are none.
  std::string fallen_words() const {
    int all = 0;
    std::vector<std::string> counts;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const int fallen = runs_that_fell_back(comparison_.variants[i]);
      if (fallen > 0) counts.push_back(fmt::format("{} of {}", fallen, named(rows_[i])));
      all += fallen;
    }
    if (all == 0) return "";
    return fmt::format(" {} fell below {} again later ({}).", count_text(all, "run"), target(),
                       listed(counts));
  }

  // Returns the number of runs with an evaluation below the target after one that reached it.
  int runs_that_fell_back(const ComparedVariant& variant) const {
    int fallen = 0;
    for (const ComparedRun& run : variant.runs) {
      if (!run.is_done()) continue;
      const auto& curve = run.result->curve;
      const auto is_below = [&](const CurvePoint& point) {
        return point.accuracy < *comparison_.target_accuracy;
      };
      const auto first = std::ranges::find_if_not(curve, is_below);
      if (std::any_of(first, curve.end(), is_below)) ++fallen;
    }
    return fallen;
  }

  const Comparison& comparison_;
  const Rows& rows_;
  std::vector<Warning> warnings_;
};

}  // namespace

std::vector<Warning> warnings(const Comparison& comparison, const Rows& rows) {
  return WarningWriter(comparison, rows).write();
}

}  // namespace syncopate::bench
