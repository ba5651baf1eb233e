#include "bench/compare/report/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "bench/compare/report/machine.h"
#include "bench/compare/report/method_facts.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
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
    warn_of_assumptions();
    std::ranges::move(method_facts(outcome_), std::back_inserter(facts_));
    return std::move(facts_);
  }

 private:
  void warn(std::string subject, std::string text) {
    facts_.push_back({std::move(subject), std::move(text), true});
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
  std::string of_rows(int count) const { return fmt::format("{} of {}", count, judged_.size()); }

  // "async: 0.01 is too large for stale gradients; try 0.0025"
  void warn_of_large_rates() {
    const std::vector<std::size_t> left_out = left_out_rows(outcome_);
    if (left_out.empty()) return;
    const ComparedVariant& variant = comparison_.variants[left_out.front()];
    const double rate =
        variant.learning_rate.value_or(0.0) * variant.learning_rate_factor.value_or(1.0);
    const std::size_t others = left_out.size() - 1;
    warn("rate", fmt::format("{}: {} is too large for stale gradients; try {}{}",
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
    warn_of_search();
    const std::string& rule = comparison_.learning_rate_rule;
    if (!is_untuned(rule) && rule != "preset") return;
    const std::string rates = rule == "preset" ? "the preset's learning rates"
                              : rule == "none" ? "one learning rate for all"
                                               : "rates follow the batch only";
    warn("not tuned", rates + "; others may change the order");
  }

  void warn_of_search() {
    if (!comparison_.is_tuned()) return;
    constexpr std::int64_t kFewSamples = 200;
    const auto& chance = comparison_.tuning.front().chance;
    if (chance && chance->validation_samples < kFewSamples) {
      warn("tuning", fmt::format("the search judged its runs on {} samples only; see --split",
                                 chance->validation_samples));
    }
    std::vector<std::string> names;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (comparison_.variants[row].is_at_border) names.push_back(short_name(rows_[row]));
    }
    if (names.empty()) return;
    warn("tuning", fmt::format("values beyond those tried may be better for {}", listed(names)));
  }

  void warn_of_machine() {
    if (const auto use = cpu_use(comparison_); use && use->is_shared) warn("CPUs", use->words);
    if (comparison_.has_virtual_clock) return;
    if (const int machines = count_machines(comparison_); machines > 1) {
      warn("machines",
           fmt::format("runs of {} machines or versions; their times are not compared", machines));
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
      const auto reaches = [&](const CurvePoint& point) { return point.accuracy >= target; };
      reached += std::ranges::any_of(run.curve, reaches) ? 1 : 0;
      fallen += fell_below_again(run, target) ? 1 : 0;
    });
    if (fallen > 0) {
      const Outcome lasting = outcome_of("", with_lasting_target(comparison_));
      const bool is_same = answer_words(lasting).use == answer_words(outcome_).use &&
                           lasting.answer.next == outcome_.answer.next;
      warn("spikes",
           fmt::format("{} of {} runs fell below {} again later{}", fallen, reached,
                       target_text(comparison_), is_same ? "" : "; the answer depends on this"));
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

  void warn_of_assumptions() {
    const auto is_async = [](const auto& row) { return row.kind == Kind::kAsynchronous; };
    if (!comparison_.has_virtual_clock || count_rows(is_async) == 0) return;
    std::vector<std::string> assumptions;
    if (has_random_step_times(comparison_)) assumptions.emplace_back("random step times");
    if (comparison_.has_free_messages()) {
      assumptions.emplace_back("free messages");
    }
    if (assumptions.empty()) return;
    warn("simulated", listed(assumptions) + " favour async");
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
