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
  Point (*position)(const CurvePoint&);
  bool is_accuracy;
};

Point accuracy_at_samples(const CurvePoint& one) {
  return {static_cast<double>(one.samples), 100.0 * one.accuracy};
}
Point loss_at_samples(const CurvePoint& one) {
  return {static_cast<double>(one.samples), one.loss};
}
Point loss_at_seconds(const CurvePoint& one) { return {one.seconds, one.loss}; }

// Returns a thin line for each run, then the means of all variants, so that no run hides a mean.
std::vector<Curve> curves_of(const View& view, const Comparison& comparison) {
  std::vector<Curve> thin;
  std::vector<Curve> means;
  const Rows rows = summarise(comparison);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const ComparedRun& run : comparison.variants[i].runs) {
      if (!run.result) continue;
      Curve curve = series_curve(i, "");
      std::ranges::transform(run.result->curve, std::back_inserter(curve.points), view.position);
      curve.width = 0.6;
      curve.dash = run.has_failed() ? "2 2" : "";
      curve.marker.radius = 0.0;
      thin.push_back(std::move(curve));
    }
    if (rows[i].done == 0) continue;
    means.push_back(series_curve(i, rows[i].name));
    means.back().points = mean_curve(comparison.variants[i], view.position);
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

std::vector<Point> mean_curve(const ComparedVariant& variant,
                              Point (*position)(const CurvePoint& evaluation)) {
  std::vector<Point> sums;
  double runs = 0.0;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done()) continue;
    if (runs++ == 0.0) sums.resize(run.result->curve.size());
    sums.resize(std::min(sums.size(), run.result->curve.size()));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Point point = position(run.result->curve[i]);
      sums[i] = {sums[i].x + point.x, sums[i].y + point.y};
    }
  }
  for (Point& sum : sums) sum = {sum.x / runs, sum.y / runs};
  return sums;
}

Point accuracy_at_seconds(const CurvePoint& evaluation) {
  return {evaluation.seconds, 100.0 * evaluation.accuracy};
}

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
                                accuracy, accuracy_at_samples, true},
                           View{"accuracy-seconds", split + " accuracy against time", seconds,
                                accuracy, accuracy_at_seconds, true},
                           View{"loss-samples", split + " loss against samples", samples, loss,
                                loss_at_samples, false},
                           View{"loss-seconds", split + " loss against time", seconds, loss,
                                loss_at_seconds, false}}) {
    auto plot = learning_plot(view, comparison);
    if (plot) plots.push_back(std::move(*plot));
  }
  return plots;
}

}  // namespace syncopate::bench
