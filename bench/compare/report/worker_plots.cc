// Plots of what workers did: the staleness of their gradients, where their time went, the bytes
// they sent and received, and the time they spent on communication.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/statistics.h"
#include "bench/compare/report/summary.h"
#include "bench/plots/charts.h"
#include "bench/plots/figure.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Returns the number of gradients by staleness, over all workers and all runs that are done. The
// count of a range of stalenesses is spread evenly over the range.
std::vector<std::int64_t> staleness_counts_of(const ComparedVariant& variant) {
  constexpr std::uint64_t kLongest = 1U << 16;  // counted together with all that is longer
  ps::StalenessHistogram all;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done()) continue;
    for (const WorkerStaleness& worker : run.result->summary.staleness) all.merge(worker.histogram);
  }
  std::vector<std::int64_t> counts;
  for (std::size_t range = 0; range < all.counts().size(); ++range) {
    const std::uint64_t begin = std::min(ps::StalenessHistogram::least_of(range), kLongest);
    const std::uint64_t end =
        std::min({ps::StalenessHistogram::least_of(range + 1), all.max() + 1, kLongest});
    const auto width = std::max<std::size_t>(end, begin + 1) - begin;
    counts.resize(std::max(counts.size(), begin + width));
    std::int64_t left = all.counts()[range];
    for (std::size_t i = 0; i < width; ++i) {
      const std::int64_t part = left / static_cast<std::int64_t>(width - i);
      counts[begin + i] += part;
      left -= part;
    }
  }
  return counts;
}

std::string staleness_caption(const std::vector<std::int64_t>& counts, std::size_t shown) {
  const auto at = [&](double share) { return percentile_of_counts(counts, share); };
  std::string text =
      fmt::format("median {}, 95th percentile {}, largest {}", at(0.5), at(0.95), at(1.0));
  std::int64_t beyond = 0;
  for (std::size_t t = shown; t < counts.size(); ++t) beyond += counts[t];
  if (beyond > 0) text += fmt::format("; {} beyond {}", beyond, shown - 1);
  return text;
}

std::int64_t total_of(const std::vector<std::int64_t>& counts) {
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  return total;
}

// Returns the percentage of gradients in each bar of `width` staleness values.
std::vector<double> shares_of(const std::vector<std::int64_t>& counts, std::size_t shown,
                              std::size_t width) {
  std::vector<double> shares((shown + width - 1) / width, 0.0);
  const auto total = static_cast<double>(total_of(counts));
  for (std::size_t t = 0; t < std::min(shown, counts.size()); ++t) {
    shares[t / width] += 100.0 * static_cast<double>(counts[t]) / total;
  }
  return shares;
}

struct Histogram {
  std::size_t series;
  std::string name;
  std::vector<std::int64_t> counts;
};

// The horizontal scale that all panels of a plot share, so that they can be compared.
struct HistogramScale {
  std::size_t shown = 1;  // staleness 0 .. shown - 1 is drawn
  std::size_t width = 1;  // staleness values per bar
};

HistogramScale scale_of(const std::vector<Histogram>& histograms) {
  constexpr std::size_t kMostBars = 50;
  HistogramScale scale;
  for (const Histogram& one : histograms) {
    // The top 0.1 % of staleness is left out: one rare large value would squeeze all others.
    const auto reach = static_cast<std::size_t>(percentile_of_counts(one.counts, 0.999)) + 1;
    scale.shown = std::max(scale.shown, reach);
  }
  scale.width = (scale.shown + kMostBars - 1) / kMostBars;
  scale.shown = scale.width * ((scale.shown + scale.width - 1) / scale.width);
  return scale;
}

std::string draw_histogram(const Histogram& one, const HistogramScale& scale) {
  constexpr double kHeight = 190.0;
  Svg svg(kPanelWidth, kHeight, "Staleness of gradients, " + one.name);
  const Axis x = fitting_axis(kPanelWidth - 70.0, [&](int most) {
    return counting_axis("staleness (versions)", -0.5, static_cast<double>(scale.shown) - 0.5,
                         most);
  });
  const std::vector<double> shares = shares_of(one.counts, scale.shown, scale.width);
  const double most = *std::max_element(shares.begin(), shares.end());
  const PlotFrame frame(svg, kPanelWidth, kHeight, x,
                        linear_axis("gradients (%)", 0.0, most, 4, true));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] <= 0.0) continue;
    const double from = static_cast<double>(i * scale.width) - 0.5;
    const Point corner = frame.at(from, shares[i]);
    const Point end = frame.at(from + static_cast<double>(scale.width), 0.0);
    const double gap = end.x - corner.x > 4.0 ? 1.0 : 0.0;
    svg.rectangle({corner.x + gap / 2, corner.y}, end.x - corner.x - gap, end.y - corner.y,
                  series_classes(one.series) + " bar",
                  fmt::format("staleness {}: {} % of gradients", i * scale.width,
                              decimal_text(shares[i], 2)));
  }
  return svg.finish();
}

// The parts of a worker's time, in stacking order.
enum Part : std::size_t { kCompute, kCommunication, kPeers, kInput, kOther, kParts };

// Where one worker's time went: seconds of each part, summed over the runs of a variant.
struct WorkerParts {
  std::array<double, kParts> seconds{};
  double total = 0.0;
  bool knows_peers = true;
};

std::map<int, WorkerParts> parts_of(const ComparedVariant& variant) {
  std::map<int, WorkerParts> workers;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done()) continue;
    for (const WorkerMetrics& times : run.result->times) {
      if (!std::isfinite(times.seconds) || times.seconds <= 0.0) continue;
      WorkerParts& parts = workers[times.worker];
      parts.seconds[kCompute] += times.compute_seconds;
      parts.seconds[kCommunication] += times.communication_exposed_seconds;
      parts.seconds[kPeers] += times.peers_wait_seconds.value_or(0.0);
      parts.seconds[kInput] += times.input_wait_seconds;
      parts.total += times.seconds;
      parts.knows_peers = parts.knows_peers && times.peers_wait_seconds;
    }
  }
  for (auto& [worker, parts] : workers) {
    double known = 0.0;
    for (const double seconds : parts.seconds) known += seconds;
    parts.seconds[kOther] = std::max(0.0, parts.total - known);
    parts.total = std::max(parts.total, known);
  }
  return workers;
}

StackedChart time_chart(const std::string& name, const std::map<int, WorkerParts>& workers) {
  StackedChart chart{.title = "Where the time went, " + name,
                     .label_title = "worker",
                     .axis_title = "share of time (%)",
                     .part_names = {"compute", "exposed communication", "waiting for workers",
                                    "waiting for input", "other"},
                     .part_classes = {"p0", "p1", "p2", "p3", "p4"},
                     .rows = {}};
  for (const auto& [worker, parts] : workers) {
    StackedRow row{.label = fmt::format("{}", worker), .shares = {}};
    for (const double seconds : parts.seconds) row.shares.push_back(seconds / parts.total);
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

constexpr double kMegabyte = 1e6;
constexpr double kMilliseconds = 1e3;

// Returns amount(metrics) for each worker of every finished run, without unknown values.
template <typename Amount>
std::vector<double> over_workers(const ComparedVariant& variant, Amount amount) {
  std::vector<double> values;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done()) continue;
    for (const WorkerMetrics& times : run.result->times) {
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

// The communication time of a worker in milliseconds per step. Each finished run that has both a
// predicted and a measured time adds one element to each vector.
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
    for (const WorkerMetrics& times : run.result->times) {
      seconds += times.communication_exposed_seconds;
      steps += times.steps;
    }
    if (steps == 0 || !std::isfinite(seconds)) continue;
    found.predicted.push_back(kMilliseconds * *run.result->predicted_communication_seconds);
    found.measured.push_back(kMilliseconds * seconds / static_cast<double>(steps));
  }
  return found;
}

}  // namespace

std::string staleness_plots(const Comparison& comparison) {
  const std::vector<VariantSummary> rows = summarise(comparison);
  std::vector<Histogram> histograms;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::int64_t> counts = staleness_counts_of(comparison.variants[i]);
    if (total_of(counts) > 0) histograms.push_back({i, rows[i].name, std::move(counts)});
  }
  if (histograms.empty()) return "";
  const HistogramScale scale = scale_of(histograms);
  std::vector<Panel> panels;
  for (const Histogram& one : histograms) {
    panels.push_back(
        {one.name, draw_histogram(one, scale), staleness_caption(one.counts, scale.shown)});
  }
  std::string caption =
      "The version that a gradient was applied to minus the version that it was computed from, for "
      "each bucket of a gradient, over all workers and seeds. Synchronous variants have no "
      "staleness. Panels share the horizontal "
      "scale, but not the vertical one.";
  if (scale.width > 1) caption += fmt::format(" A bar covers {} versions.", scale.width);
  return panels_html(
      {"Staleness", "", {{box_swatch("ink bar"), "share of all buckets of gradients"}}, caption},
      panels);
}

std::string time_plots(const Comparison& comparison) {
  const std::vector<VariantSummary> rows = summarise(comparison);
  std::vector<Panel> panels;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::map<int, WorkerParts> workers = parts_of(comparison.variants[i]);
    if (workers.empty()) continue;
    const bool knows_peers =
        std::ranges::all_of(workers, [](const auto& worker) { return worker.second.knows_peers; });
    panels.push_back({rows[i].name, draw(time_chart(rows[i].name, workers)),
                      knows_peers || workers.size() < 2
                          ? ""
                          : "Waiting for workers was measured as part of communication."});
  }
  if (panels.empty()) return "";
  return panels_html({"Where each worker's time went",
                      "",
                      {{box_swatch("p0"), "compute"},
                       {box_swatch("p1"), "exposed communication"},
                       {box_swatch("p2"), "waiting for workers"},
                       {box_swatch("p3"), "waiting for input"},
                       {box_swatch("p4"), "other"}},
                      "Share of a worker's time in steps, over all seeds. Communication is exposed "
                      "while the worker waits for it. Where CPUs are shared, each part includes "
                      "waiting for a CPU. Other is what is left of a step."},
                     panels);
}

std::string bytes_plot(const Comparison& comparison) {
  const std::vector<VariantSummary> rows = summarise(comparison);
  BarChart chart{.title = "Bytes per worker",
                 .axis_title = "megabytes per worker (MB, 10⁶ bytes)",
                 .groups = {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ComparedVariant& variant = comparison.variants[i];
    const auto sent = over_workers(
        variant, [](const WorkerMetrics& times) { return megabytes(times.bytes_sent); });
    const auto received = over_workers(
        variant, [](const WorkerMetrics& times) { return megabytes(times.bytes_received); });
    if (sent.empty() || received.empty()) continue;
    chart.groups.push_back(
        {rows[i].name, {mean_bar(sent, "s0 bar"), mean_bar(received, "s4 bar")}});
  }
  if (chart.groups.empty()) return "";
  return figure_html(
      {chart.title,
       draw(chart),
       {{box_swatch("s0 bar"), "sent"}, {box_swatch("s4 bar"), "received"}},
       "Over the whole run, mean over workers and seeds. Variants that did not count "
       "bytes are left out."});
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
        {box_swatch("s1 bar"), "measured: wait time of a worker"}},
       "The measured time is shorter where communication overlaps with computation, and longer "
       "where it includes waiting for other workers."});
}

}  // namespace syncopate::bench
