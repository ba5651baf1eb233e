// What was spent, a bar per variant: time to the target, bytes, communication.
#include <algorithm>
#include <cmath>

#include "bench/compare/report/bar_chart.h"
#include "bench/compare/report/figure.h"
#include "bench/compare/report/plots.h"
#include "bench/compare/report/statistics.h"
#include "bench/compare/report/svg.h"
#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

constexpr double kMegabyte = 1e6;
constexpr double kMilliseconds = 1e3;

std::string target_note(const VariantSummary& row) {
  if (row.ended() == 0) return "pending";
  if (row.seconds_to_target) return sample_text(*row.seconds_to_target, " ± ");
  if (row.done == 0) return "failed";
  if (row.reached == 0) return "not reached";
  return std::to_string(row.reached) + " of " + count_text(row.ended(), "seed");
}

// `quantity` of each worker of every run that is done, where it is known.
template <typename Amount>
std::vector<double> over_workers(const ComparedVariant& variant, Amount amount) {
  std::vector<double> values;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done()) continue;
    for (const WorkerTimes& times : run.result->times) {
      const std::optional<double> value = amount(times);
      if (value && std::isfinite(*value)) values.push_back(*value);
    }
  }
  return values;
}

Bar mean_bar(const std::vector<double>& values, const std::string& classes) {
  const double value = mean(values);
  return {
      .value = value, .deviation = {}, .dots = {}, .note = short_text(value), .classes = classes};
}

std::optional<double> megabytes(const std::optional<std::int64_t>& bytes) {
  return bytes ? std::optional(static_cast<double>(*bytes) / kMegabyte) : std::nullopt;
}

// Of every run that has both; milliseconds per step of a worker.
struct Communication {
  std::vector<double> predicted;
  std::vector<double> measured;
};

Communication communication_of(const ComparedVariant& variant) {
  Communication found;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done() || !run.result->predicted_communication_seconds) continue;
    double seconds = 0.0;
    std::int64_t steps = 0;
    for (const WorkerTimes& times : run.result->times) {
      seconds += times.communication_seconds;
      steps += times.steps;
    }
    if (steps == 0 || !std::isfinite(seconds)) continue;
    found.predicted.push_back(kMilliseconds * *run.result->predicted_communication_seconds);
    found.measured.push_back(kMilliseconds * seconds / static_cast<double>(steps));
  }
  return found;
}

}  // namespace

std::string target_plot(const Comparison& comparison) {
  if (!comparison.target_accuracy) return "";
  const std::vector<VariantSummary> rows = summarise(comparison);
  const std::string target = percent_text(*comparison.target_accuracy);
  BarChart chart{.title = "Time to " + target + " test accuracy",
                 .axis_title = comparison.has_virtual_clock ? "training time (virtual s)"
                                                            : "training time (s)",
                 .groups = {}};
  bool reached = false;
  bool has_whiskers = false;
  bool has_dots = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Bar bar{.value = {}, .deviation = {}, .dots = {}, .note = target_note(rows[i]), .classes = ""};
    bar.classes = series_classes(i) + " bar";
    if (rows[i].seconds_to_target) {
      bar.value = rows[i].seconds_to_target->mean;
      bar.deviation = rows[i].seconds_to_target->deviation;
    }
    if (rows[i].ended() > 1) bar.dots = rows[i].reached_seconds;
    has_whiskers = has_whiskers || bar.deviation;
    has_dots = has_dots || !bar.dots.empty();
    reached = reached || !rows[i].reached_seconds.empty();
    chart.groups.push_back({rows[i].name, {bar}});
  }
  if (!reached) return "";  // the table says so; bars without length would not
  std::vector<LegendEntry> legend = {{box_swatch("s0 bar"), "mean, where every seed reached it"}};
  if (has_whiskers) legend.push_back({whisker_swatch(), "± one standard deviation"});
  if (has_dots) legend.push_back({dot_swatch(), "one seed"});
  return figure_html({chart.title, draw(chart), legend,
                      "The first evaluation at or above the target counts; nothing is "
                      "interpolated."});
}

std::string bytes_plot(const Comparison& comparison) {
  const std::vector<VariantSummary> rows = summarise(comparison);
  BarChart chart{.title = "Bytes of a worker",
                 .axis_title = "megabytes per worker (MB, 10⁶ bytes)",
                 .groups = {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ComparedVariant& variant = comparison.variants[i];
    const auto sent =
        over_workers(variant, [](const WorkerTimes& times) { return megabytes(times.bytes_sent); });
    const auto received = over_workers(
        variant, [](const WorkerTimes& times) { return megabytes(times.bytes_received); });
    if (sent.empty() || received.empty()) continue;
    chart.groups.push_back(
        {rows[i].name, {mean_bar(sent, "s0 bar"), mean_bar(received, "s4 bar")}});
  }
  if (chart.groups.empty()) return "";
  return figure_html({chart.title,
                      draw(chart),
                      {{box_swatch("s0 bar"), "sent"}, {box_swatch("s4 bar"), "received"}},
                      "Over the whole run, mean over workers and seeds; variants that did not "
                      "count are left out."});
}

std::string prediction_plot(const Comparison& comparison) {
  const std::vector<VariantSummary> rows = summarise(comparison);
  BarChart chart{.title = "Communication of a step: predicted and measured",
                 .axis_title = "time per step (ms)",
                 .groups = {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Communication found = communication_of(comparison.variants[i]);
    if (found.measured.empty()) continue;
    chart.groups.push_back(
        {rows[i].name, {mean_bar(found.predicted, "s6 bar"), mean_bar(found.measured, "s1 bar")}});
  }
  if (chart.groups.empty()) return "";
  return figure_html(
      {chart.title,
       draw(chart),
       {{box_swatch("s6 bar"), "predicted from the link"},
        {box_swatch("s1 bar"), "measured: a worker stood and waited"}},
       "Measured may be less, where communication hides behind computation, and more, where "
       "waiting for other workers cannot be told from it."});
}

}  // namespace syncopate::bench
