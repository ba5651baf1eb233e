#include "bench/compare/report/tables.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

std::string times_the_best(const RowOutcome& cell) {
  if (cell.state == RowState::kWinner) return "winner";
  if (cell.state == RowState::kTie) {
    return cell.over_best ? ratio_text(cell.ratio) + " tie" : "soonest, tie";
  }
  if (cell.ratio == 0.0) return "-";
  return ratio_text(cell.ratio) + (cell.over_best ? interval_text(*cell.over_best) : "");
}

std::vector<std::string> notes_of(const Outcome& outcome, std::size_t index) {
  const VariantSummary& row = outcome.rows[index];
  std::vector<std::string> notes;
  for (const std::string& failure : row.failures) notes.push_back("failed, " + failure);
  notes.insert(notes.end(), row.notes.begin(), row.notes.end());
  if (row.better_rate) {
    notes.push_back(
        fmt::format("left out: its learning rate is too large for stale gradients; try {}",
                    rate_text(*row.better_rate)));
  }
  if (row.pending > 0) notes.push_back("not yet trained: " + count_text(row.pending, "run"));
  for (const VariantSummary& other : outcome.rows) {
    if (other.same_as == index) notes.push_back("and, with the same bits and times, " + other.name);
  }
  return notes;
}

// Returns "173\n± 12"; without a deviation one line, and "-" without values.
template <typename Text>
std::string with_deviation(const std::optional<Sample>& sample, Text text) {
  if (!sample) return "-";
  const std::string deviation = sample->deviation ? "\n± " + text(*sample->deviation) : "";
  return text(sample->mean) + deviation;
}

std::string interval_words(const PairDifference& pair) {
  const Interval interval = pair.interval();
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return "-";
  const bool is_time = pair.measure == Measure::kTime;
  const auto text = [&](double end) {
    if (!is_time) return points_text(end);
    const std::string factor = factor_text(std::exp(end));
    // An interval that excludes 1 must not look as if it contained 1.
    return factor == "1.00x" ? decimal_text(std::exp(end), 4) + "x" : factor;
  };
  return fmt::format("{} to {}", text(interval.low), text(interval.high));
}

std::string p_text(double p) { return p < 1e-5 ? "< 0.00001" : fmt::format("{:.2g}", p); }

std::string shown_text(bool is_claimed) { return is_claimed ? "yes" : "no"; }

}  // namespace

Table answer_table(const Outcome& outcome) {
  Table table;
  table.heads = {{""},
                 {"s to " + target_text(outcome.comparison)},
                 {"times the best"},
                 {"accuracy"},
                 {"CPUs", "", true}};
  for (const std::size_t row : sorted_rows(outcome)) {
    const VariantSummary& summary = outcome.rows[row];
    if (summary.same_as) continue;
    const RowOutcome& cell = outcome.cells[row];
    table.rows.push_back(
        {.name = name_with_short(summary),
         .cells = {cell.ratio > 0.0 ? short_seconds(cell.seconds) : state_text(cell),
                   times_the_best(cell),
                   summary.accuracy ? decimal_text(100.0 * summary.accuracy->mean, 1) + " %" : "-",
                   std::to_string(summary.resources.cpus)},
         .notes = notes_of(outcome, row)});
  }
  return table;
}

Table results_table(const Outcome& outcome) {
  const std::string target = "to " + target_text(outcome.comparison);
  Table table;
  table.heads = {{"variant"},
                 {"CPUs", "processes", true},
                 {"updates", "x batch", true},
                 {"accuracy", "final, %"},
                 {target, "mean, s"},
                 {"CPU-s", target, true},
                 {"samples", target, true},
                 {"samples/s", "mean"},
                 {"staleness", "mean", true}};
  const auto whole = [](double value) { return decimal_text(value, 0); };
  const auto points = [](double share) { return decimal_text(100.0 * share, 2); };
  const auto plain = [](double value) { return decimal_text(value, 2); };
  for (std::size_t row = 0; row < outcome.rows.size(); ++row) {
    const VariantSummary& summary = outcome.rows[row];
    std::optional<Sample> time = summary.seconds_to_target;
    if (time && outcome.cells[row].ratio > 0.0) time->mean = outcome.cells[row].seconds;
    table.rows.push_back(
        {.name = summary.name,
         .cells = {fmt::format("{}\nin {}", summary.resources.cpus, summary.resources.processes),
                   summary.batch() ? fmt::format("{} x {}", whole(summary.updates->mean),
                                                 whole(*summary.batch()))
                                   : "-",
                   with_deviation(summary.accuracy, points),
                   summary.seconds_to_target
                       ? with_deviation(time, short_text)
                       : fmt::format("{} of {}", summary.reached, outcome.cells[row].runs),
                   time ? short_text(time->mean * summary.resources.cpus) : "-",
                   summary.samples_to_target ? whole(summary.samples_to_target->mean) : "-",
                   with_deviation(summary.samples_per_second, short_text),
                   summary.staleness ? plain(summary.staleness->mean) : "-"},
         .notes = notes_of(outcome, row)});
  }
  return table;
}

Table tests_table(const Outcome& outcome) {
  Table table;
  table.heads = {{"variants"},        {"difference", "first to second"},
                 {"interval"},        {"p", "adjusted", true},
                 {"level", "", true}, {"shown"}};
  const auto add = [&](std::size_t a, std::size_t b, std::vector<std::string> cells) {
    table.rows.push_back({.name = named(outcome.rows[a]) + " and " + named(outcome.rows[b]),
                          .cells = std::move(cells)});
  };
  const auto level_text = [](double level) { return level > 0.0 ? percent_text(level) : "-"; };
  for (const Measure measure : {Measure::kTime, Measure::kAccuracy}) {
    for (const PairDifference& pair : outcome.claims.all()) {
      if (pair.measure != measure) continue;
      const bool is_time = measure == Measure::kTime;
      add(pair.a, pair.b,
          {is_time ? "time " + factor_text(std::exp(pair.value))
                   : points_text(pair.value) + " points",
           interval_words(pair), p_text(pair.adjusted_p), level_text(pair.level),
           shown_text(pair.is_claimed())});
    }
    if (measure != Measure::kTime) continue;
    for (const CensoredPair& pair : outcome.claims.all_censored()) {
      add(pair.a, pair.b,
          {fmt::format("reached: {} and {}", outcome.rows[pair.a].reached,
                       outcome.rows[pair.b].reached),
           "-", p_text(pair.test.p_value), level_text(pair.level),
           pair.seeds_needed ? fmt::format("needs {} seeds", *pair.seeds_needed)
                             : shown_text(pair.is_claimed())});
    }
  }
  return table;
}

}  // namespace syncopate::bench
