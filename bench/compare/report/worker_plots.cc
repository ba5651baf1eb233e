// Small panels, one per variant: how stale gradients were, and where each worker's time went.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "bench/compare/report/bar_chart.h"
#include "bench/compare/report/figure.h"
#include "bench/compare/report/plots.h"
#include "bench/compare/report/statistics.h"
#include "bench/compare/report/svg.h"
#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

// Gradients by staleness, over all workers and runs that are done.
std::vector<std::int64_t> counts_of(const ComparedVariant& variant) {
  std::vector<std::int64_t> counts;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done()) continue;
    for (const WorkerStalenessCounts& worker : run.result->staleness) {
      counts.resize(std::max(counts.size(), worker.counts.size()), 0);
      for (std::size_t t = 0; t < worker.counts.size(); ++t) counts[t] += worker.counts[t];
    }
  }
  return counts;
}

std::string staleness_caption(const std::vector<std::int64_t>& counts, std::size_t shown) {
  const auto at = [&](double share) { return std::to_string(percentile_of_counts(counts, share)); };
  std::string text = "median " + at(0.5) + ", 95th percentile " + at(0.95) + ", largest " + at(1.0);
  std::int64_t beyond = 0;
  for (std::size_t t = shown; t < counts.size(); ++t) beyond += counts[t];
  if (beyond > 0) text += "; " + std::to_string(beyond) + " beyond " + std::to_string(shown - 1);
  return text;
}

std::int64_t total_of(const std::vector<std::int64_t>& counts) {
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  return total;
}

// Percent of all gradients in each bar of `width` staleness values.
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

// Along x, of all panels alike, so that they can be compared.
struct HistogramScale {
  std::size_t shown = 1;  // staleness 0 .. shown - 1
  std::size_t width = 1;  // of a bar
};

HistogramScale scale_of(const std::vector<Histogram>& histograms) {
  constexpr std::size_t kMostBars = 50;
  HistogramScale scale;
  for (const Histogram& one : histograms) {
    // The longest waits are rare: the largest of a thousand would squeeze all others.
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
  const Frame frame(svg, kPanelWidth, kHeight, x, linear_axis("gradients (%)", 0.0, most, 4, true));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] <= 0.0) continue;
    const double from = static_cast<double>(i * scale.width) - 0.5;
    const Point corner = frame.at(from, shares[i]);
    const Point end = frame.at(from + static_cast<double>(scale.width), 0.0);
    const double gap = end.x - corner.x > 4.0 ? 1.0 : 0.0;
    svg.rectangle({corner.x + gap / 2, corner.y}, end.x - corner.x - gap, end.y - corner.y,
                  series_classes(one.series) + " bar",
                  "staleness " + std::to_string(i * scale.width) + ": " +
                      decimal_text(shares[i], 2) + " % of gradients");
  }
  return svg.finish();
}

// Parts of a worker's time, in the order they are stacked in.
enum Part : std::size_t { kCompute, kCommunication, kPeers, kInput, kOther, kParts };

struct WorkerParts {
  std::array<double, kParts> seconds{};
  double total = 0.0;
  bool knows_peers = true;
};

std::map<int, WorkerParts> parts_of(const ComparedVariant& variant) {
  std::map<int, WorkerParts> workers;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done()) continue;
    for (const WorkerTimes& times : run.result->times) {
      if (!std::isfinite(times.seconds) || times.seconds <= 0.0) continue;
      WorkerParts& parts = workers[times.worker];
      parts.seconds[kCompute] += times.compute_seconds;
      parts.seconds[kCommunication] += times.communication_seconds;
      parts.seconds[kPeers] += times.peers_seconds.value_or(0.0);
      parts.seconds[kInput] += times.input_seconds;
      parts.total += times.seconds;
      parts.knows_peers = parts.knows_peers && times.peers_seconds;
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

StackedChart chart_of(const std::string& name, const std::map<int, WorkerParts>& workers) {
  StackedChart chart{.title = "Where the time went, " + name,
                     .label_title = "worker",
                     .axis_title = "share of time (%)",
                     .part_names = {"compute", "exposed communication", "waiting for peers",
                                    "waiting for input", "other"},
                     .part_classes = {"p0", "p1", "p2", "p3", "p4"},
                     .rows = {}};
  for (const auto& [worker, parts] : workers) {
    StackedRow row{.label = std::to_string(worker), .shares = {}};
    for (const double seconds : parts.seconds) row.shares.push_back(seconds / parts.total);
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

}  // namespace

std::string staleness_plots(const Comparison& comparison) {
  const std::vector<VariantSummary> rows = summarise(comparison);
  std::vector<Histogram> histograms;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::int64_t> counts = counts_of(comparison.variants[i]);
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
      "The version a gradient was applied to less the version it was computed from; all workers "
      "and seeds. Variants whose replicas keep step have none. Panels share the "
      "horizontal scale, not the vertical one.";
  if (scale.width > 1) caption += " A bar covers " + std::to_string(scale.width) + " versions.";
  return panels_html(
      {"Staleness", "", {{box_swatch("ink bar"), "share of all gradients"}}, caption}, panels);
}

std::string time_plots(const Comparison& comparison) {
  const std::vector<VariantSummary> rows = summarise(comparison);
  std::vector<Panel> panels;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::map<int, WorkerParts> workers = parts_of(comparison.variants[i]);
    if (workers.empty()) continue;
    const bool knows_peers =
        std::ranges::all_of(workers, [](const auto& worker) { return worker.second.knows_peers; });
    panels.push_back(
        {rows[i].name, draw(chart_of(rows[i].name, workers)),
         knows_peers ? "" : "Waiting for peers could not be told from communication."});
  }
  if (panels.empty()) return "";
  return panels_html({"Where each worker's time went",
                      "",
                      {{box_swatch("p0"), "compute"},
                       {box_swatch("p1"), "exposed communication"},
                       {box_swatch("p2"), "waiting for peers"},
                       {box_swatch("p3"), "waiting for input"},
                       {box_swatch("p4"), "other"}},
                      "Share of a worker's time in steps, over all seeds. Exposed: it stood and "
                      "waited for bytes."},
                     panels);
}

}  // namespace syncopate::bench
