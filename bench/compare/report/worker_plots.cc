// Plots of the workers: their throughput, where their time went, the staleness of their
// gradients, the bytes they sent and received, and the time they spent on communication.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/statistics.h"
#include "bench/compare/report/summary.h"
#include "bench/plots/charts.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Plots samples per second as bars.
BarChart throughput_bars(const Rows& rows) {
  BarChart chart{.title = "Throughput", .axis_title = "Throughput (samples/s)"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].samples_per_second) continue;
    const Sample& speed = *rows[i].samples_per_second;
    chart.rows.push_back({.label = rows[i].name,
                          .segments = {{speed.mean, series_curve(i, "").stroke}},
                          .note = short_text(speed.mean)});
    if (speed.values.size() < 2) continue;
    chart.rows.back().dots = speed.values;
    chart.key = "bar: mean · dot: one seed";
  }
  return chart;
}

// The parts of a worker's time, in stacking order.
constexpr std::size_t kParts = 5;
constexpr std::array<std::string_view, kParts> kPartNames = {
    "compute", "exposed communication", "waiting for workers", "waiting for input", "other"};
constexpr std::array<std::string_view, kParts> kPartFills = {
    colour::kGreen, colour::kRed, colour::kOrange, colour::kSky, "#b4b4b4"};

// Returns the shares of the parts in percent.
std::array<double, kParts> shares_of(const WorkerMetrics& times) {
  std::array<double, kParts> shares = {times.compute_seconds, times.communication_exposed_seconds,
                                       times.peers_wait_seconds.value_or(0.0),
                                       times.input_wait_seconds};
  double known = 0.0;
  for (const double seconds : shares) known += seconds;
  shares.back() = std::max(0.0, times.seconds - known);
  for (double& share : shares) share *= 100.0 / std::max(times.seconds, known);
  return shares;
}

// Returns the metrics of each worker of every finished run.
std::vector<WorkerMetrics> workers_of(const ComparedVariant& variant) {
  std::vector<WorkerMetrics> workers;
  for (const RunResult* const run : variant.results()) {
    workers.insert(workers.end(), run->times.begin(), run->times.end());
  }
  return workers;
}

BarChart parts_chart(const Comparison& comparison) {
  BarChart chart{.title = "Where the workers' time went",
                 .axis_title = "Share of a worker's time in steps, mean of the workers (%)"};
  for (std::size_t part = 0; part < kParts; ++part) {
    chart.legend.push_back({kPartFills[part], std::string(kPartNames[part])});
  }
  const Rows rows = summarise(comparison);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<WorkerMetrics> workers = workers_of(comparison.variants[i]);
    std::erase_if(workers, [](const WorkerMetrics& times) {
      return !std::isfinite(times.seconds) || times.seconds <= 0.0;
    });
    if (workers.empty()) continue;
    BarRow row{.label = rows[i].name};
    for (std::size_t part = 0; part < kParts; ++part) {
      double share = 0.0;
      for (const WorkerMetrics& times : workers) share += shares_of(times)[part];
      share /= static_cast<double>(workers.size());
      row.segments.push_back({share, kPartFills[part],
                              fmt::format("{}: {} %", kPartNames[part], decimal_text(share, 1))});
    }
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

// Returns the staleness of all workers and all runs that are done.
ps::StalenessHistogram staleness_of(const ComparedVariant& variant) {
  ps::StalenessHistogram all;
  for (const RunResult* const run : variant.results()) {
    for (const WorkerStaleness& worker : run->summary.staleness) all.merge(worker.histogram);
  }
  return all;
}

// Returns the largest staleness of this share of the gradients.
double staleness_percentile(const ps::StalenessHistogram& all, double share) {
  const auto range = static_cast<std::size_t>(percentile_of_counts(all.counts(), share));
  return static_cast<double>(std::min(ps::StalenessHistogram::least_of(range + 1) - 1, all.max()));
}

LineChart staleness_chart(const Comparison& comparison) {
  LineChart chart{.title = "Staleness of gradients"};
  double widest = 1.0;
  const Rows rows = summarise(comparison);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ps::StalenessHistogram all = staleness_of(comparison.variants[i]);
    if (all.count() == 0) continue;
    Curve curve =
        series_curve(i, fmt::format("{}: median {:.0f}, largest {}", shortened(rows[i].name, 32),
                                    staleness_percentile(all, 0.5), all.max()));
    for (std::size_t range = 0; range < all.counts().size(); ++range) {
      const auto begin = static_cast<double>(ps::StalenessHistogram::least_of(range));
      const auto end = static_cast<double>(ps::StalenessHistogram::least_of(range + 1));
      const double share = 100.0 * static_cast<double>(all.counts()[range]) /
                           static_cast<double>(all.count()) / (end - begin);
      curve.points.push_back({(begin + end - 1.0) / 2.0, share});
    }
    // One rare large value would squeeze all others.
    widest = std::max(widest, staleness_percentile(all, 0.999));
    chart.curves.push_back(std::move(curve));
  }
  if (chart.curves.empty()) return chart;
  for (Curve& curve : chart.curves) {
    std::erase_if(curve.points, [&](const Point& point) { return point.x > widest; });
  }
  chart.x = fitting_axis("staleness (versions)", 0.0, widest, kRoomForX, true);
  chart.y = linear_axis("Share of the gradients (%)", 0.0, extent_of(chart.curves, &Point::y).high,
                        5, true);
  return chart;
}

// The means of two quantities to compare.
struct Pair {
  double first = 0.0;
  double second = 0.0;
  int count = 0;  // of workers or runs
  void add(double one, double other) {
    ++count;
    first += (one - first) / count;
    second += (other - second) / count;
  }
};

Pair megabytes_of(const ComparedVariant& variant) {
  Pair found;
  for (const WorkerMetrics& times : workers_of(variant)) {
    if (!times.bytes_sent || !times.bytes_received) continue;
    found.add(1e-6 * static_cast<double>(*times.bytes_sent),
              1e-6 * static_cast<double>(*times.bytes_received));
  }
  return found;
}

// The communication time of a worker in milliseconds per step, predicted and measured, over the
// finished runs that have both.
Pair communication_of(const ComparedVariant& variant) {
  Pair found;
  for (const RunResult* const run : variant.results()) {
    if (!run->predicted_communication_seconds) continue;
    double seconds = 0.0;
    std::int64_t steps = 0;
    for (const WorkerMetrics& times : run->times) {
      seconds += times.communication_exposed_seconds;
      steps += times.steps;
    }
    if (steps == 0 || !std::isfinite(seconds)) continue;
    found.add(1e3 * *run->predicted_communication_seconds,
              1e3 * seconds / static_cast<double>(steps));
  }
  return found;
}

// Returns the chart with two bars for each variant that has values.
BarChart with_pairs(BarChart chart, const Comparison& comparison,
                    Pair (*pair_of)(const ComparedVariant&)) {
  const Rows rows = summarise(comparison);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Pair pair = pair_of(comparison.variants[i]);
    if (pair.count == 0) continue;
    chart.rows.push_back({.label = rows[i].name,
                          .segments = {{pair.first, chart.legend[0].fill}},
                          .note = short_text(pair.first)});
    chart.rows.push_back({.label = "",
                          .segments = {{pair.second, chart.legend[1].fill}},
                          .note = short_text(pair.second)});
  }
  return chart;
}

// Adds the plot of a chart that shows something.
void add_plot(std::vector<NamedPlot>& plots, const std::string& name, const BarChart& chart,
              const std::string& caption) {
  if (!chart.rows.empty()) plots.push_back({name, draw(chart), caption});
}
void add_plot(std::vector<NamedPlot>& plots, const std::string& name, const LineChart& chart,
              const std::string& caption) {
  if (!chart.curves.empty()) plots.push_back({name, draw(chart), caption});
}

}  // namespace

std::vector<NamedPlot> time_plots(const Comparison& comparison) {
  std::vector<NamedPlot> plots;
  add_plot(plots, "throughput", throughput_bars(summarise(comparison)), "");
  add_plot(
      plots, "worker-time", parts_chart(comparison),
      "Communication is exposed while the worker waits for it, which includes waiting for "
      "workers where this was not measured. Asynchronous workers wait for workers when no batch "
      "is left for them." +
          std::string(comparison.has_virtual_clock
                          ? ""
                          : " Where CPUs are shared, each part includes waiting for a CPU."));
  add_plot(plots, "staleness", staleness_chart(comparison),
           "The version that a gradient was applied to minus the version that it was computed "
           "from, for each bucket of a gradient, over all workers and seeds. Synchronous variants "
           "have no staleness.");
  return plots;
}

std::vector<NamedPlot> communication_plots(const Comparison& comparison) {
  std::vector<NamedPlot> plots;
  add_plot(plots, "bytes",
           with_pairs({.title = "Bytes per worker",
                       .axis_title = "Megabytes (10⁶ bytes) of a run, mean of workers and seeds",
                       .legend = {{colour::kBlue, "sent"}, {colour::kOrange, "received"}}},
                      comparison, megabytes_of),
           "Variants that did not count bytes are left out. Servers, together, send what their "
           "workers receive, and receive what they send.");
  add_plot(plots, "communication",
           with_pairs({.title = "Communication of a step: predicted and measured",
                       .axis_title = "Communication time per step (ms)",
                       .legend = {{colour::kGrey, "predicted from the link"},
                                  {colour::kRed, "measured: wait time of a worker"}}},
                      comparison, communication_of),
           "The measured time is shorter where communication overlaps with computation, and longer "
           "where it includes waiting for other workers.");
  return plots;
}

}  // namespace syncopate::bench
