#include "bench/compare/report/tuning_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/compare/report/summary.h"
#include "bench/plots/charts.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

double rate_of(const ComparedVariant& variant) {
  return variant.learning_rate.value_or(0.0) * variant.learning_rate_factor.value_or(1.0);
}

// Calls use(variant, run) for every tuning run of the row with this label. run: the result.
template <typename Use>
void for_each_tuning_run(const Comparison& comparison, const std::string& label, Use use) {
  for (const Comparison& round : comparison.tuning) {
    for (const ComparedVariant& variant : round.variants) {
      if (variant.tuning_of != label) continue;
      for (const ComparedRun& run : variant.runs) {
        if (run.result) use(variant, *run.result);
      }
    }
  }
}

// The accuracy that the searches tried to reach first; nullopt if it is not known.
std::optional<double> tuning_target(const Comparison& comparison) {
  return comparison.tuning.empty() ? std::nullopt : comparison.tuning.back().target_accuracy;
}

std::optional<double> seconds_of(const RunResult& run, std::optional<double> target) {
  if (run.failure || run.curve.empty() || !target) return std::nullopt;
  const auto point = time_to_target(run, *target);
  return point ? std::optional(point->seconds) : std::nullopt;
}

std::optional<double> accuracy_of(const RunResult& run, std::optional<double> /*target*/) {
  if (run.failure || run.curve.empty()) return std::nullopt;
  return 100.0 * last_accuracy(run);
}

using Value = std::optional<double> (*)(const RunResult& run, std::optional<double> target);

// Returns for each row a marker for each of its runs and a line through the means of its points.
std::vector<Curve> curves_of(const Comparison& comparison, Value value) {
  const std::optional<double> target = tuning_target(comparison);
  const bool is_time = value == seconds_of;  // the search compares geometric means of times
  std::vector<Curve> curves;
  for (std::size_t row = 0; row < comparison.variants.size(); ++row) {
    const std::string& label = comparison.variants[row].label;
    std::map<double, std::vector<double>> values;
    for_each_tuning_run(comparison, label, [&](const auto& variant, const RunResult& run) {
      const double step = rate_of(variant) / (1.0 - variant.momentum);
      if (const auto found = value(run, target)) values[step].push_back(*found);
    });
    if (values.empty()) continue;
    Curve means = series_curve(row, label);
    means.width = 1.0;
    means.marker.radius = 0.0;
    for (const auto& [step, all] : values) {
      double sum = 0.0;
      for (const double one : all) {
        sum += is_time ? std::log(one) : one;
        Curve dot = series_curve(row, "");
        dot.width = 0.0;
        dot.points = {{step, one}};
        curves.push_back(std::move(dot));
      }
      const double mean = sum / static_cast<double>(all.size());
      means.points.push_back({step, is_time ? std::exp(mean) : mean});
    }
    curves.push_back(std::move(means));
  }
  return curves;
}

std::string time_unit(const Comparison& comparison) {
  return comparison.has_virtual_clock ? "virtual s" : "s";
}

// Returns the rates that a round tried for a row. If the momentum was searched, returns rates
// divided by (1 - momentum).
std::set<double> rates_tried(const Comparison& round, const std::string& label,
                             const Searched& searched) {
  std::set<double> rates;
  for (const ComparedVariant& variant : round.variants) {
    if (variant.tuning_of != label) continue;
    rates.insert(searched.momentum ? rate_of(variant) / (1.0 - variant.momentum)
                                   : rate_of(variant));
  }
  return rates;
}

std::string amount_text(const std::vector<std::int64_t>& values) {
  return decimal_text(static_cast<double>(std::ranges::max(values)), 0);
}

// Returns "0.1 (async and ssp:3) and 0.2 (all-reduce)".
std::string values_of_rows(
    const Outcome& outcome,
    const std::function<std::optional<double>(const ComparedVariant&)>& value) {
  std::map<double, std::vector<std::string>> rows;
  for (std::size_t row = 0; row < outcome.rows.size(); ++row) {
    const std::optional<double> one = value(outcome.comparison.variants[row]);
    if (one) rows[*one].push_back(short_name(outcome.rows[row]));
  }
  std::vector<std::string> texts;
  for (const auto& [one, names] : rows) {
    texts.push_back(fmt::format("{} ({})", exact_text(one), listed(names)));
  }
  return listed(texts);
}

// A hyperparameter that may be searched beside the learning rate.
struct SearchedValue {
  bool Searched::*is_searched;
  const char* name;
  TableHead head;
  // Returns the value; nullopt for a variant without this hyperparameter.
  std::optional<double> (*value)(const ComparedVariant& variant);
};

const std::vector<SearchedValue>& searched_values() {
  static const std::vector<SearchedValue> kValues = {
      {&Searched::momentum,
       "momentum",
       {"momentum", "chosen"},
       [](const ComparedVariant& variant) { return std::optional(variant.momentum); }},
      {&Searched::batch,
       "batch of a worker",
       {"batch", "of a worker"},
       [](const ComparedVariant& variant) {
         return std::optional(static_cast<double>(variant.batch_size));
       }},
      {&Searched::rounds,
       "steps of a round",
       {"steps", "of a round"},
       [](const ComparedVariant& variant) {
         const auto steps = static_cast<double>(variant.steps_in_round);
         return steps > 0.0 ? std::optional(steps) : std::nullopt;
       }},
      {&Searched::outer_rate,
       "outer rate",
       {"outer rate", "chosen"},
       [](const ComparedVariant& variant) { return variant.outer_learning_rate; }}};
  return kValues;
}

// Returns the searched values of a variant, as far as it has them.
std::vector<std::optional<double>> values_of(const ComparedVariant& variant) {
  std::vector<std::optional<double>> values;
  for (const SearchedValue& one : searched_values()) values.push_back(one.value(variant));
  return values;
}

}  // namespace

Searched searched_in(const Comparison& comparison) {
  Searched searched;
  for (const SearchedValue& one : searched_values()) {
    for (const ComparedVariant& row : comparison.variants) {
      std::set<std::optional<double>> values;
      for_each_tuning_run(comparison, row.label, [&](const auto& variant, const RunResult&) {
        values.insert(one.value(variant));
      });
      searched.*one.is_searched |= values.size() > 1;
    }
  }
  return searched;
}

std::string tuned_values(const Outcome& outcome) {
  const Comparison& comparison = outcome.comparison;
  if (!comparison.is_tuned()) return "";
  const Searched searched = searched_in(comparison);
  std::string text = "rates " + values_of_rows(outcome, rate_of);
  for (const SearchedValue& one : searched_values()) {
    if (searched.*one.is_searched) {
      text += fmt::format("; {} {}", one.name, values_of_rows(outcome, one.value));
    }
  }
  return text;
}

// Returns the geometric mean of the times to the target, of the tuning runs of a row at its chosen
// values; "-" if a run missed the target.
std::string time_at_chosen_values(const Comparison& comparison, const ComparedVariant& row) {
  double sum = 0.0;
  int runs = 0;
  for_each_tuning_run(comparison, row.label, [&](const auto& variant, const RunResult& run) {
    if (rate_of(variant) != rate_of(row) || values_of(variant) != values_of(row)) return;
    const auto seconds = seconds_of(run, tuning_target(comparison));
    sum += seconds ? std::log(*seconds) : std::numeric_limits<double>::quiet_NaN();
    ++runs;
  });
  const double mean = std::exp(sum / runs);
  return std::isfinite(mean) ? short_text(mean) : "-";
}

Table tuning_table(const Comparison& comparison) {
  Table table;
  if (comparison.tuning.empty()) return table;
  const Searched searched = searched_in(comparison);
  const char* const rate = searched.momentum ? "rate / (1 - momentum)" : "rate";
  table.heads = {
      {"variant"}, {"rate", "chosen"}, {rate, "without tuning", true}, {rate, "tried", true}};
  for (const SearchedValue& one : searched_values()) {
    if (searched.*one.is_searched) table.heads.push_back(one.head);
  }
  for (const TableHead& head :
       std::vector<TableHead>{{"at a border"},
                              {"runs", "of the search"},
                              {"samples", "of the search", true},
                              {time_unit(comparison), "of the search"},
                              {"s to " + target_text(comparison), "at the chosen values"}}) {
    table.heads.push_back(head);
  }
  for (const ComparedVariant& variant : comparison.variants) {
    int runs = 0;
    std::int64_t samples = 0;
    double seconds = 0.0;
    for_each_tuning_run(comparison, variant.label, [&](const auto&, const RunResult& run) {
      ++runs;
      samples += run.summary.samples;
      seconds += run.summary.seconds;
    });
    const std::set<double> first = rates_tried(comparison.tuning.front(), variant.label, searched);
    std::set<double> tried;
    for (const Comparison& round : comparison.tuning) {
      tried.merge(rates_tried(round, variant.label, searched));
    }
    std::vector<std::string> cells{exact_text(rate_of(variant))};
    // The first round tries as many rates above the one without tuning as below it.
    const auto text = [](double value) { return fmt::format("{:.3g}", value); };
    cells.push_back(first.empty() ? "-" : text(*std::next(first.begin(), std::ssize(first) / 2)));
    cells.push_back(
        tried.empty() ? "-" : fmt::format("{} to {}", text(*tried.begin()), text(*tried.rbegin())));
    for (const SearchedValue& one : searched_values()) {
      const std::optional<double> value = one.value(variant);
      if (searched.*one.is_searched) cells.push_back(value ? exact_text(*value) : "-");
    }
    for (const std::string& cell :
         {std::string(variant.is_at_border ? "yes" : "no"), std::to_string(runs),
          decimal_text(static_cast<double>(samples), 0), short_text(seconds),
          time_at_chosen_values(comparison, variant)}) {
      cells.push_back(cell);
    }
    table.rows.push_back({.name = variant.label, .cells = std::move(cells)});
  }
  return table;
}

std::vector<NamedPlot> tuning_plots(const Comparison& comparison) {
  std::vector<NamedPlot> plots;
  const std::string time = time_unit(comparison);
  const auto add = [&](const std::string& name, const std::string& title, Value value,
                       const auto& axis, const std::string& caption) {
    LineChart chart{.title = title, .curves = curves_of(comparison, value)};
    const Extent x = extent_of(chart.curves, &Point::x);
    const Extent y = extent_of(chart.curves, &Point::y);
    if (x.low > x.high || y.low > y.high) return;
    chart.x = logarithmic_axis("learning rate / (1 - momentum)", x.low, x.high);
    chart.y = axis(y);
    plots.push_back({name, draw(chart), caption});
  };
  const auto target = tuning_target(comparison);
  if (target) {
    add(
        "tuning-time", "Time to the target against the learning rate", seconds_of,
        [&](Extent y) {
          return logarithmic_axis(fmt::format("time to {} ({})", percent_text(*target), time),
                                  y.low, y.high);
        },
        "A marker for each tuning run that reached the target on the validation split; lines "
        "connect means.");
  }
  add(
      "tuning-accuracy", "Accuracy against the learning rate", accuracy_of,
      [](Extent y) { return accuracy_axis("validation accuracy (%)", y.low); },
      "A marker for each tuning run that did not diverge.");
  return plots;
}

std::string tuning_words(const Comparison& comparison) {
  if (comparison.tuning.empty()) return "";
  std::vector<std::int64_t> runs;
  auto first_seed = std::numeric_limits<std::uint64_t>::max();
  for (const ComparedVariant& variant : comparison.variants) {
    std::int64_t count = 0;
    for_each_tuning_run(comparison, variant.label, [&](const auto&, const RunResult& run) {
      ++count;
      first_seed = std::min(first_seed, run.seed);
    });
    runs.push_back(count);
  }
  const auto target = tuning_target(comparison);
  const std::string held_out =
      comparison.tuning.front().chance
          ? fmt::format(
                " on {} samples, the same for all variants, that these runs did not train",
                decimal_text(
                    static_cast<double>(comparison.tuning.front().chance->validation_samples), 0))
          : "";
  const Searched searched = searched_in(comparison);
  std::set<std::string> momenta;
  std::set<std::int64_t> rounds;
  for (const ComparedVariant& variant : comparison.variants) {
    for_each_tuning_run(comparison, variant.label, [&](const auto& tried, const RunResult&) {
      momenta.insert(exact_text(tried.momentum));
      if (tried.steps_in_round > 0) rounds.insert(tried.steps_in_round);
    });
  }
  return fmt::format(
      "{} runs of each variant, with seeds from {} on, searched the learning rate{}{}: first the "
      "rate without tuning and 1/4, 1/2, 2 and 4 times this rate; then the next rate while the "
      "best one is at a border; the other runs repeated the better half with another seed, then "
      "the better half of these, "
      "and so on. Of the "
      "values that were repeated most, the best are those with which the largest share of runs "
      "reached {}, and of these the soonest (geometric mean){}; of equal ones, those nearer to the "
      "values without tuning. These times have the resolution of the evaluations, too; the final "
      "accuracy was not searched for. Then the "
      "seeds of this report trained all samples at the chosen values. All other hyperparameters, "
      "and the updates in which a rate rises, come from the command or are defaults of syncopate "
      "train: \"rates\" and \"optimizer\" state them{}. Other values of these might favour another "
      "variant. The runs of the search have other seeds and samples, so their times differ from "
      "those of the report, and no test uses them. Intervals hold for the chosen values and do not "
      "include the uncertainty of the "
      "search",
      amount_text(runs), first_seed,
      searched.momentum
          ? fmt::format(", momentum ({})", listed({momenta.begin(), momenta.end()}, "or"))
          : "",
      fmt::format("{}{}{}", searched.batch ? ", batch" : "",
                  searched.rounds
                      ? fmt::format(", number of steps in a round ({})", fmt::join(rounds, ", "))
                      : "",
                  searched.outer_rate ? ", learning rate of the outer step" : ""),
      target ? percent_text(*target) + ", the target of the search" : "the target", held_out,
      searched.momentum || searched.batch
          ? ""
          : "; --tune momentum,batch-size searches these two as well");
}

}  // namespace syncopate::bench
