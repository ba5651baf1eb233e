// Plots of learning: accuracy and loss of all runs.

#include <algorithm>
#include <cmath>
#include <iterator>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/summary.h"
#include "bench/plots/charts.h"

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

std::optional<NamedPlot> learning_plot(const View& view, const Comparison& comparison) {
  LineChart chart{.title = view.title, .curves = curves_of(view, comparison)};
  const Extent x = extent_of(chart.curves, &Point::x);
  const Extent y = extent_of(chart.curves, &Point::y);
  if (x.low > x.high || y.low > y.high) return std::nullopt;
  chart.x = fitting_axis(view.x_title, 0.0, x.high, kRoomForX);
  chart.y = logarithmic_axis(view.y_title, y.low, y.high);
  std::string caption = "Thick: mean of the seeds; thin: one run, dashed where it failed.";
  if (view.is_accuracy) {
    double least = 100.0 * comparison.target_accuracy.value_or(1.0);
    for (const Curve& curve : chart.curves) {
      if (!curve.name.empty()) least = std::min(least, extent_of({curve}, &Point::y).high);
    }
    chart.y = accuracy_axis(view.y_title, std::max(y.low, least - kShownPoints));
    if (comparison.target_accuracy) {
      chart.level = {100.0 * *comparison.target_accuracy, "target " + target_text(comparison)};
    }
  } else if (chart.y.scale == Scale::kLogarithmic) {
    caption += " The scale of the loss is logarithmic.";
  }
  return NamedPlot{view.name, draw(chart), caption};
}

}  // namespace

std::vector<Point> mean_curve(const ComparedVariant& variant,
                              Point (*position)(const CurvePoint& evaluation)) {
  std::vector<Point> sums;
  double runs = 0.0;
  for (const RunResult* const run : variant.results()) {
    if (runs++ == 0.0) sums.resize(run->curve.size());
    sums.resize(std::min(sums.size(), run->curve.size()));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Point point = position(run->curve[i]);
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
