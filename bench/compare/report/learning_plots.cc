// Plots of learning: accuracy and loss of all runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/summary.h"
#include "bench/plots/charts.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// One of the learning curves: which quantities it shows.
struct View {
  std::string name;
  std::string title;
  std::string x_title;
  std::string y_title;
  double (*x)(const CurvePoint&);
  double (*y)(const CurvePoint&);
  bool is_accuracy;
};

double samples_of(const CurvePoint& point) { return static_cast<double>(point.samples); }
double seconds_of(const CurvePoint& point) { return point.seconds; }
double percent_of(const CurvePoint& point) { return 100.0 * point.accuracy; }
double loss_of(const CurvePoint& point) { return point.loss; }

std::vector<Point> curve_points(const View& view, const RunResult& run) {
  std::vector<Point> points;
  for (const CurvePoint& point : run.curve) points.push_back({view.x(point), view.y(point)});
  return points;
}

// Averages the n-th evaluations of all runs, up to the length of the shortest run.
std::vector<Point> mean_curve(const std::vector<std::vector<Point>>& runs) {
  std::size_t length = runs.front().size();
  for (const auto& run : runs) length = std::min(length, run.size());
  std::vector<Point> points(length);
  for (std::size_t i = 0; i < length; ++i) {
    for (const auto& run : runs) {
      points[i].x += run[i].x / static_cast<double>(runs.size());
      points[i].y += run[i].y / static_cast<double>(runs.size());
    }
  }
  return points;
}

// Returns a thin line for each run, then the means of all variants, so that no run hides a mean.
std::vector<Curve> curves_of(const View& view, const Comparison& comparison) {
  std::vector<Curve> thin;
  std::vector<Curve> means;
  const Rows rows = summarise(comparison);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::vector<Point>> done;
    for (const ComparedRun& run : comparison.variants[i].runs) {
      if (!run.result) continue;
      Curve curve = series_curve(i, "");
      curve.points = curve_points(view, *run.result);
      if (run.is_done()) done.push_back(curve.points);
      curve.width = 0.6;
      curve.dash = run.has_failed() ? "2 2" : "";
      curve.marker.radius = 0.0;
      thin.push_back(std::move(curve));
    }
    if (done.empty()) continue;
    means.push_back(series_curve(i, rows[i].name));
    means.back().points = mean_curve(done);
  }
  std::ranges::move(means, std::back_inserter(thin));
  return thin;
}

// The smallest and the largest finite value that take() was given.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

std::optional<NamedPlot> learning_plot(const View& view, const Comparison& comparison) {
  LineChart chart{.title = view.title, .x = {}, .y = {}, .curves = curves_of(view, comparison)};
  Range x;
  Range y;
  Range best;  // the highest value of each mean
  for (const Curve& curve : chart.curves) {
    Range own;
    for (const Point& point : curve.points) {
      x.take(point.x);
      own.take(point.y);
    }
    y.take(own.low);
    y.take(own.high);
    if (!curve.name.empty()) best.take(own.high);
  }
  if (x.is_empty() || y.is_empty()) return std::nullopt;
  chart.x = fitting_axis(
      kRoomForX, [&](int most) { return linear_axis(view.x_title, 0.0, x.high, most, false); });
  if (view.is_accuracy) {
    const auto& target = comparison.target_accuracy;
    const double cut = std::min(best.low, 100.0 * target.value_or(1.0)) - kShownPoints;
    chart.y = accuracy_axis(view.y_title, std::max(y.low, cut));
    if (target) chart.level = {100.0 * *target, "target " + percent_text(*target)};
  } else {
    chart.y = logarithmic_axis(view.y_title, y.low, y.high);
  }
  const bool is_logarithmic = chart.y.scale == Scale::kLogarithmic;
  return NamedPlot{view.name, view.title, draw(chart),
                   std::string("Thick: mean of the seeds; thin: one run, dashed where it failed.") +
                       (is_logarithmic ? " The scale of the loss is logarithmic." : "")};
}

}  // namespace

Axis accuracy_axis(const std::string& title, double low) {
  low = std::clamp(10.0 * std::floor(low / 10.0), 0.0, 90.0);
  return linear_axis(title, low, 100.0, static_cast<int>((100.0 - low) / 10.0), false);
}

std::vector<NamedPlot> learning_plots(const Comparison& comparison) {
  const std::string samples = "samples trained";
  const std::string seconds =
      comparison.has_virtual_clock ? "training time (virtual s)" : "training time (s)";
  const std::string split = comparison.watched_split() == "test" ? "Test" : "Validation";
  const std::string accuracy = split + " accuracy (%)";
  const std::string loss = split + " loss (nats per sample)";
  std::vector<NamedPlot> plots;
  for (const View& view : {View{"accuracy-samples", split + " accuracy against samples", samples,
                                accuracy, samples_of, percent_of, true},
                           View{"accuracy-seconds", split + " accuracy against time", seconds,
                                accuracy, seconds_of, percent_of, true},
                           View{"loss-samples", split + " loss against samples", samples, loss,
                                samples_of, loss_of, false},
                           View{"loss-seconds", split + " loss against time", seconds, loss,
                                seconds_of, loss_of, false}}) {
    auto plot = learning_plot(view, comparison);
    if (plot) plots.push_back(std::move(*plot));
  }
  return plots;
}

}  // namespace syncopate::bench
