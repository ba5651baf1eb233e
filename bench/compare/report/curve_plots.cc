// Learning curves: the same measurements against what was spent in samples and in seconds.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/compare/report/figure.h"
#include "bench/compare/report/line_chart.h"
#include "bench/compare/report/plots.h"
#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

struct View {
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

std::vector<Point> points_of(const View& view, const RunResult& run) {
  std::vector<Point> points;
  for (const CurvePoint& point : run.curve) points.push_back({view.x(point), view.y(point)});
  return points;
}

// The mean of the n-th evaluations, as long as every run has one.
std::vector<Point> mean_of(const std::vector<std::vector<Point>>& runs) {
  std::size_t length = runs.empty() ? 0 : runs.front().size();
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

// Thin lines of all variants first, then the means, so that no mean is hidden by another's seeds.
std::vector<Curve> curves_of(const View& view, const Comparison& comparison) {
  std::vector<Curve> thin;
  std::vector<Curve> thick;
  for (std::size_t series = 0; series < comparison.variants.size(); ++series) {
    std::vector<std::vector<Point>> done;
    for (const ComparedRun& run : comparison.variants[series].runs) {
      if (!run.result) continue;
      const std::vector<Point> points = points_of(view, *run.result);
      if (run.is_done()) done.push_back(points);
      if (run.has_failed()) thin.push_back({series, CurveStyle::kFailed, points});
    }
    if (done.size() > 1) {
      for (const auto& points : done) thin.push_back({series, CurveStyle::kSeed, points});
    }
    if (!done.empty()) thick.push_back({series, CurveStyle::kMean, mean_of(done)});
  }
  std::ranges::move(thick, std::back_inserter(thin));
  return thin;
}

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

template <typename Coordinate>
Range range_of(const std::vector<Curve>& curves, Coordinate coordinate) {
  Range range;
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) range.take(point.*coordinate);
  }
  return range;
}

Axis axis_of_y(const View& view, Range range, const std::optional<double>& target) {
  if (!view.is_accuracy) return logarithmic_axis(view.y_title, range.low, range.high);
  if (target) range.take(100.0 * *target);
  return percent_axis(view.y_title, range.low, range.high);
}

std::vector<LegendEntry> legend_of(const View& view, const Comparison& comparison,
                                   const std::vector<Curve>& curves) {
  const std::vector<VariantSummary> rows = summarise(comparison);
  std::vector<LegendEntry> legend;
  const auto has = [&](CurveStyle style) {
    return std::ranges::any_of(curves, [&](const Curve& curve) { return curve.style == style; });
  };
  for (std::size_t series = 0; series < rows.size(); ++series) {
    if (rows[series].ended() > 0) {
      legend.push_back({series_swatch(series), rows[series].name});
    }
  }
  if (has(CurveStyle::kSeed)) legend.push_back({line_swatch("ink seed"), "one seed"});
  if (has(CurveStyle::kFailed))
    legend.push_back({line_swatch("ink seed failed"), "a run that failed"});
  if (view.is_accuracy && comparison.target_accuracy) {
    legend.push_back(
        {line_swatch("reference"), "target, " + percent_text(*comparison.target_accuracy)});
  }
  return legend;
}

std::string caption_of(const Axis& y) {
  if (y.scale == Scale::kLogarithmic) return "The scale of the loss is logarithmic.";
  if (y.scale != Scale::kNearHundred) return "";
  return "The scale is logarithmic in what is missing to 100 %: equal steps divide the error "
         "alike.";
}

std::string draw_view(const View& view, const Comparison& comparison) {
  std::vector<Curve> curves = curves_of(view, comparison);
  const Range x = range_of(curves, &Point::x);
  const Range y = range_of(curves, &Point::y);
  if (x.is_empty() || y.is_empty()) return "";
  LineChart chart{.title = view.title, .x = {}, .y = {}, .curves = {}};
  chart.x = fitting_axis(kPlotWidth - 80.0, [&](int most) {
    return linear_axis(view.x_title, 0.0, x.high, most, false);
  });
  chart.y = axis_of_y(view, y, comparison.target_accuracy);
  const std::vector<LegendEntry> legend = legend_of(view, comparison, curves);
  const std::string caption = caption_of(chart.y);
  if (view.is_accuracy && comparison.target_accuracy) {
    const double target = 100.0 * *comparison.target_accuracy;
    curves.insert(curves.begin(),
                  {0, CurveStyle::kReference, {{chart.x.low, target}, {chart.x.high, target}}});
  }
  chart.curves = std::move(curves);
  return figure_html({view.title, draw(chart), legend, caption});
}

}  // namespace

std::string curve_plots(const Comparison& comparison) {
  const std::string samples = "samples trained";
  const std::string seconds =
      comparison.has_virtual_clock ? "training time (virtual s)" : "training time (s)";
  const std::string accuracy = "test accuracy (%)";
  const std::string loss = "test loss (nats per sample)";
  std::string html;
  for (const View& view :
       {View{"Test accuracy against samples", samples, accuracy, samples_of, percent_of, true},
        View{"Test accuracy against time", seconds, accuracy, seconds_of, percent_of, true},
        View{"Test loss against samples", samples, loss, samples_of, loss_of, false},
        View{"Test loss against time", seconds, loss, seconds_of, loss_of, false}}) {
    html += draw_view(view, comparison);
  }
  return html;
}

}  // namespace syncopate::bench
