#include "bench/compare/report/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include "bench/compare/report/machine.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/compare/report/tuning_report.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "models/base/flag_values.h"

namespace syncopate::bench {
namespace {

class FactFinder {
 public:
  explicit FactFinder(const Outcome& outcome)
      : outcome_(outcome),
        comparison_(outcome.comparison),
        rows_(outcome.rows),
        judged_(judged_rows(outcome.rows)) {}

  std::vector<Fact> find() {
    warn_of_large_rates();
    warn_of_runs();
    warn_of_rates();
    warn_of_learning();
    warn_of_machine();
    warn_of_times();
    tell_method();
    tell_claim();
    tell_conditions();
    return std::move(facts_);
  }

 private:
  void warn(std::string subject, std::string text) {
    facts_.push_back({std::move(subject), std::move(text), true});
  }
  void tell(std::string subject, std::string text) {
    if (!text.empty()) facts_.push_back({std::move(subject), std::move(text), false});
  }

  // Calls `take(run, row)` for each run that is done, without rows that claims leave out.
  template <typename Take>
  void for_runs(Take take) const {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (rows_[row].is_left_out()) continue;
      for (const RunResult* const run : comparison_.variants[row].results()) take(*run, row);
    }
  }

  // Counts the rows, of those about which claims can be made.
  template <typename Holds>
  int count_rows(Holds holds) const {
    return static_cast<int>(
        std::ranges::count_if(judged_, [&](const VariantSummary* row) { return holds(*row); }));
  }
  int count_variants(bool ComparedVariant::*holds) const {
    return static_cast<int>(std::ranges::count_if(comparison_.variants, holds));
  }
  std::string of_rows(int count) const { return fmt::format("{} of {}", count, judged_.size()); }

  // "async: 0.01 is too large for stale gradients; 0.0025 would do"
  void warn_of_large_rates() {
    const std::vector<std::size_t> left_out = left_out_rows(outcome_);
    if (left_out.empty()) return;
    const ComparedVariant& variant = comparison_.variants[left_out.front()];
    const double rate =
        variant.learning_rate.value_or(0.0) * variant.learning_rate_factor.value_or(1.0);
    const std::size_t others = left_out.size() - 1;
    warn("rate", fmt::format("{}: {} is too large for stale gradients; {} would do{}",
                             short_name(rows_[left_out.front()]), exact_text(rate),
                             rate_text(*rows_[left_out.front()].better_rate),
                             others == 0 ? "" : fmt::format(" ({} more: see the table)", others)));
  }

  void warn_of_runs() {
    int missing = 0;
    int runs = 0;
    int not_numbers = 0;
    for (const VariantSummary& row : rows_) {
      missing += row.failed + row.pending;
      runs += row.ended() + row.pending;
      if (!row.is_left_out()) not_numbers += row.not_numbers();
    }
    if (missing > 0) {
      warn("incomplete", fmt::format("{} of {} runs failed or are missing", missing, runs));
    }
    if (not_numbers > 0) {
      warn("diverged",
           fmt::format("the accuracy of {} of {} runs is not a number", not_numbers, runs));
    }
  }

  void warn_of_learning() {
    const int learning = count_rows([](const auto& row) { return row.is_still_learning; });
    if (learning > 0) {
      warn("learning",
           fmt::format("{} variants were still learning; more epochs would raise accuracies",
                       of_rows(learning)));
    }
    const int guessing =
        count_rows([&](const auto& row) { return row.is_at_chance(comparison_.chance); });
    if (guessing == 0) return;
    warn("guessing", fmt::format("{} variants ended no better than guessing, up to {}",
                                 of_rows(guessing), percent_text(comparison_.chance->limit())));
  }

  void warn_of_rates() {
    const int borders = count_variants(&ComparedVariant::is_at_border);
    if (borders > 0) {
      warn("tuning",
           fmt::format("the best values of {} variants are at the border of what was tried",
                       of_rows(borders)));
    }
    const std::string& rule = comparison_.learning_rate_rule;
    if (!is_untuned(rule) && rule != "preset") return;
    const std::string rates = rule == "preset" ? "the preset's learning rates"
                              : rule == "none" ? "one learning rate for all"
                                               : "rates follow the batch only";
    warn("not tuned", rates + "; others may change the order");
  }

  void warn_of_machine() {
    if (const auto use = cpu_use(comparison_); use && use->is_shared) warn("CPUs", use->words);
    if (comparison_.has_virtual_clock) return;
    if (comparison_.machines.size() > 1) {
      warn("machines", fmt::format("runs of {} machines or versions; their times are not compared",
                                   comparison_.machines.size()));
    }
    warn_of_uneven_seed();
    warn_of_unsteady_row();
  }

  // Names the seed during which the machine was slower or faster than with the others: several rows
  // differ in one direction.
  void warn_of_uneven_seed() {
    constexpr double kUneven = 0.9;  // of the speed with the other seeds, or its inverse
    std::map<std::uint64_t, std::vector<double>> deviations;
    for_runs([&](const RunResult& run, std::size_t row) {
      const std::vector<double>& speeds = rows_[row].samples_per_second->values;
      const double own = run.summary.samples_per_second;
      if (speeds.size() < 2 || rows_[row].disturbed > 0 || !(own > 0.0)) return;
      double others = -std::log(own);
      for (const double speed : speeds) others += std::log(speed);
      others /= static_cast<double>(speeds.size() - 1);
      deviations[run.seed].push_back(std::log(own) - others);
    });
    std::uint64_t seed = 0;
    double largest = 0.0;
    for (const auto& [of, all] : deviations) {
      if (all.size() < 2 || !(std::abs(mean(all)) > std::abs(largest))) continue;
      seed = of;
      largest = mean(all);
    }
    if (std::abs(largest) <= -std::log(kUneven)) return;
    warn("uneven", fmt::format("with seed {} the machine was {} % {}", seed,
                               decimal_text(100.0 * std::abs(std::expm1(largest)), 0),
                               largest > 0.0 ? "faster" : "slower"));
  }

  void warn_of_unsteady_row() {
    constexpr double kUnsteady = 1.5;  // ratio of the samples/s of two runs of a row
    for (const VariantSummary& row : rows_) {
      if (row.done < 2 || row.disturbed > 0) continue;
      const auto [least, most] = std::ranges::minmax(row.samples_per_second->values);
      if (!(most >= kUnsteady * least)) continue;
      return warn("unsteady", fmt::format("runs of {} had {} to {} samples/s", row.name,
                                          short_text(least), short_text(most)));
    }
  }

  void warn_of_times() {
    warn_of_late_faults();
    int fallen = 0;
    int reached = 0;
    const double target = comparison_.target_accuracy.value_or(2.0);
    for_runs([&](const RunResult& run, std::size_t) {
      const auto is_below = [&](const CurvePoint& point) { return point.accuracy < target; };
      const auto first = std::ranges::find_if_not(run.curve, is_below);
      reached += first != run.curve.end() ? 1 : 0;
      fallen += std::any_of(first, run.curve.end(), is_below) ? 1 : 0;
    });
    if (fallen > 0) {
      warn("spikes", fmt::format("{} of {} runs fell below {} again later", fallen, reached,
                                 target_text(comparison_)));
    }
  }

  // Returns when a fault happens, in seconds of training; empty for one that lasts the whole run.
  static std::optional<double> seconds_of_fault(const std::string& flag, const std::string& value) {
    const auto fields = parse_fields(value);
    if (!fields || !fields->contains("at")) return std::nullopt;
    try {
      return parse_seconds(fields->at("at"), flag);
    } catch (const UsageError&) {  // a comparison.json that was not written by compare
      return std::nullopt;
    }
  }

  // A kill, a pause or a join after the target was reached has no effect on the time to it.
  void warn_of_late_faults() {
    std::istringstream words(comparison_.faults);
    for (std::string flag, value; words >> flag >> value;) {
      const auto at = seconds_of_fault(flag, value);
      if (!at) continue;
      std::vector<int> in_time(rows_.size());
      std::vector<int> late(rows_.size());
      for_runs([&](const RunResult& run, std::size_t row) {
        if (std::ranges::find(run.faults, value) == run.faults.end()) return;
        const auto reached = time_to_target(run, comparison_.target_accuracy.value_or(2.0));
        ++(reached && reached->wall_seconds <= *at ? late : in_time)[row];
      });
      int count = 0;
      for (std::size_t row = 0; row < rows_.size(); ++row) {
        count += late[row] > 0 && in_time[row] == 0 ? 1 : 0;
      }
      if (count == 0) continue;
      warn("late fault", fmt::format("{} {} came after {} variants had reached the target", flag,
                                     value, of_rows(count)));
    }
  }

  void tell_method() {
    tell("tests",
         fmt::format("all pairs of variants are compared, times at a level of {} and accuracies at "
                     "{} (Games and Howell 1976); runs that missed the target count as longer, in "
                     "an log-rank test (exact up to 22 runs). With a probability of {} no claim of "
                     "this report is "
                     "false and all intervals hold, if runs are independent and accuracies and "
                     "logarithms of times close to normal. Variants without a claim are "
                     "not thereby equal. Claims need {} seeds",
                     percent_text(kTimeLevel), percent_text(kAccuracyLevel),
                     percent_text(1.0 - kFamilyLevel), kSeedsForClaims));
    if (comparison_.target_accuracy) tell_times();
    tell_accuracy();
    for (const VariantSummary& row : rows_) {
      if (!row.same_as) continue;
      tell("equal", fmt::format("{} and {} had the same weights and times, bit for bit, and count "
                                "once",
                                rows_[*row.same_as].name, row.name));
    }
  }

  void tell_accuracy() {
    const std::string samples =
        comparison_.chance
            ? fmt::format(" of {} samples",
                          decimal_text(static_cast<double>(comparison_.chance->test_samples), 0))
            : "";
    tell("accuracy", comparison_.watched_split() == "test"
                         ? fmt::format("the mean of the evaluations in the last tenth of a run, on "
                                       "the test set{}; its sampling error is in no deviation",
                                       samples)
                         : fmt::format("evaluated once on the test set{}, after training; the "
                                       "target is judged on the validation set",
                                       samples));
  }

  void tell_times() {
    double least = std::numeric_limits<double>::infinity();
    double most = 0.0;
    for (const VariantSummary& row : rows_) {
      for (const double gap : row.reached_gaps) {
        least = std::min(least, gap);
        most = std::max(most, gap);
      }
    }
    std::string text = fmt::format(
        "seconds of training, without evaluations, until the first evaluation at {} that lasts: "
        "one "
        "of the next two is there, too",
        target_text(comparison_));
    if (most > 0.0) {
      text += fmt::format(
          ". The previous evaluation was {} to {} s earlier; intervals include this, "
          "which more --evaluations reduce",
          short_text(least), short_text(most));
    }
    tell("times", text + ". Their means are geometric");
  }

  // Says whether the direction of a paper's claim was seen.
  void tell_claim() {
    if (!comparison_.claim) return;
    const PaperClaim& claim = *comparison_.claim;
    const auto row_of = [&](const std::string& label) {
      return static_cast<std::size_t>(
          std::ranges::find(comparison_.variants, label, &ComparedVariant::label) -
          comparison_.variants.begin());
    };
    const std::size_t better = row_of(claim.better);
    const std::size_t worse = row_of(claim.worse);
    if (std::max(better, worse) >= rows_.size()) return;
    if (!rows_[better].accuracy || !rows_[worse].accuracy) return;
    const Claims& claims = outcome_.claims;
    const bool is_seen = claims.is_more_accurate(better, worse) || claims.is_sooner(better, worse);
    const bool is_opposite =
        claims.is_more_accurate(worse, better) || claims.is_sooner(worse, better);
    const auto result = [&](std::size_t row) {
      return fmt::format("\"{}\" ended with {} % and reached {} in {} of {} runs", rows_[row].name,
                         decimal_text(100.0 * rows_[row].accuracy->mean, 1),
                         target_text(comparison_), rows_[row].reached, rows_[row].done);
    };
    tell("paper",
         fmt::format("{}: {}. {}: {}; {}. The figures of the paper are of other networks and data, "
                     "and were not reproduced",
                     claim.source, claim.text,
                     is_seen == is_opposite ? "This was not shown"
                     : is_seen              ? "This was seen"
                                            : "The opposite was seen",
                     result(better), result(worse)));
  }

  void tell_conditions() {
    tell("rates", rates_text());
    tell("stable rate", stable_rate_text());
    tell("tuning", tuning_words(comparison_));
    tell("resources",
         "each thread of a worker or replica counts as one CPU, and each server as one");
    tell("updates",
         "a batch is the samples of one update; the last, shorter batch of an epoch is "
         "not trained");
    for (const VariantSummary& row : rows_) {
      if (!row.dropped_gradients) continue;
      tell("backup", fmt::format("{} dropped {} % of its gradients, which came too late; only "
                                 "gradients that were used count as samples",
                                 row.name, decimal_text(100.0 * *row.dropped_gradients, 0)));
    }
    if (std::ranges::any_of(rows_, [](const auto& row) { return row.staleness.has_value(); })) {
      tell("staleness",
           "updates of the servers' values between a worker's pull and the use of its gradient; "
           "the bound of ssp is on steps, so it may be larger");
    }
    if (comparison_.budget.ends_with(" digits")) {
      tell("digits", "drawn by this program, not taken from MNIST");
    }
    tell("clock",
         comparison_.has_virtual_clock
             ? "virtual: seconds are simulated, and the same on one instruction set and "
               "version of oneDNN"
             : "real: workers of one machine, over shared memory and loopback sockets, "
               "without a network between them; all variants with one seed, then the next");
    const double others = most_disturbance(rows_);
    if (others > 0.0) {
      tell("others",
           fmt::format("other programs took up to {} of the CPUs during a run; above {} a "
                       "run proves nothing",
                       percent_text(std::round(1000.0 * others) / 1000.0),
                       percent_text(kMostOthersCpuShare)));
    }
    for (const Machine& machine : comparison_.machines) tell("machine", describe(machine));
    if (const auto use = cpu_use(comparison_)) tell("workers", use->words);
    if (comparison_.target_accuracy) {
      tell("target", fmt::format("{} {} accuracy{}", target_text(comparison_),
                                 comparison_.watched_split(), target_source(comparison_)));
    }
    tell("budget", comparison_.budget);
    tell("faults", comparison_.faults);
    tell("command", comparison_.command);
  }

  // Returns how claims leave out rows with a large rate; "" if stable rates are unknown.
  std::string stable_rate_text() const {
    std::vector<std::string> rates;
    for (const ComparedVariant& variant : comparison_.variants) {
      if (!variant.stable_rate) continue;
      rates.push_back(fmt::format("{} ({})", rate_text(*variant.stable_rate), variant.label));
    }
    if (rates.empty()) return "";
    return fmt::format(
        "largest rates, in factors of 2, at which the loss of one worker without momentum fell in "
        "100 updates: {}. Claims leave out a variant whose rate x (1 + staleness) / (1 - momentum) "
        "is larger by more than the square root of 2",
        listed(rates));
  }

  // Returns "0.1 (one-device), 0.8 (async; rises over 20 updates)"; "" if rates are unknown.
  std::string rates_text() const {
    std::map<std::pair<double, int>, std::vector<std::string>> variants;
    for (const ComparedVariant& variant : comparison_.variants) {
      const std::vector<const RunResult*> runs = variant.results();
      if (!variant.learning_rate || runs.empty()) continue;
      variants[{*variant.learning_rate * variant.learning_rate_factor.value_or(1.0),
                runs.front()->warmup_updates}]
          .push_back(variant.label);
    }
    std::vector<std::string> rates;
    for (const auto& [rate, labels] : variants) {
      const std::string warmup =
          rate.second > 0 ? fmt::format("; rises over {}", count_text(rate.second, "update")) : "";
      rates.push_back(fmt::format("{} ({}{})", exact_text(rate.first), listed(labels), warmup));
    }
    return listed(rates);
  }

  const Outcome& outcome_;
  const Comparison& comparison_;
  const Rows& rows_;
  const std::vector<const VariantSummary*> judged_;
  std::vector<Fact> facts_;
};

}  // namespace

std::vector<Fact> facts_of(const Outcome& outcome) { return FactFinder(outcome).find(); }

std::vector<Fact> shown_warnings(const Outcome& outcome) {
  std::vector<Fact> warnings = facts_of(outcome);
  std::erase_if(warnings, [](const Fact& fact) { return !fact.is_warning; });
  if (warnings.size() > kShownWarnings) warnings.resize(kShownWarnings);
  return warnings;
}

std::string warnings_html(const std::vector<Fact>& warnings) {
  std::string items;
  for (const Fact& warning : warnings) {
    items += fmt::format("<li><b>{}:</b> {}</li>\n", html_text(warning.subject),
                         html_text(warning.text));
  }
  return items.empty() ? "" : fmt::format("<ul class=\"warn\">\n{}</ul>\n", items);
}

}  // namespace syncopate::bench
