#include "bench/compare/report/line_chart.h"

#include <cmath>

namespace syncopate::bench {
namespace {

std::string classes_of(const Curve& curve) {
  switch (curve.style) {
    case CurveStyle::kSeed:
      return series_classes(curve.series % 7) + " seed";
    case CurveStyle::kFailed:
      return series_classes(curve.series % 7) + " seed failed";
    case CurveStyle::kReference:
      return "reference";
    default:
      return series_classes(curve.series) + " mean";
  }
}

std::vector<Point> placed(const Frame& frame, const std::vector<Point>& points) {
  std::vector<Point> drawn;
  for (const Point& point : points) {
    if (std::isfinite(point.x) && std::isfinite(point.y))
      drawn.push_back(frame.at(point.x, point.y));
  }
  return drawn;
}

// So many that series can be told apart without colour and few enough to see the line; those of
// different series at different points.
void draw_some_markers(Svg& svg, const Curve& curve, const std::vector<Point>& points) {
  constexpr std::size_t kMost = 5;
  const std::size_t stride = std::max<std::size_t>(1, points.size() / kMost);
  const std::size_t first = (curve.series * 2 + 1) % stride;
  for (std::size_t i = first; i < points.size(); i += stride) {
    svg.marker(points[i], series_marker(curve.series), 2.8, series_classes(curve.series) + " mark");
  }
}

void draw_curve(Svg& svg, const Frame& frame, const Curve& curve) {
  const std::vector<Point> points = placed(frame, curve.points);
  if (curve.style != CurveStyle::kDots) svg.polyline(points, classes_of(curve));
  if (curve.style == CurveStyle::kMean) draw_some_markers(svg, curve, points);
  if (curve.style != CurveStyle::kMeasured && curve.style != CurveStyle::kDots) return;
  const double size = curve.style == CurveStyle::kDots ? 1.8 : 3.2;
  for (const Point& point : points) {
    svg.marker(point, series_marker(curve.series), size, series_classes(curve.series) + " mark");
  }
}

}  // namespace

std::string draw(const LineChart& chart) {
  Svg svg(kPlotWidth, kPlotHeight, chart.title);
  const Frame frame(svg, kPlotWidth, kPlotHeight, chart.x, chart.y);
  for (const Curve& curve : chart.curves) draw_curve(svg, frame, curve);
  return svg.finish();
}

}  // namespace syncopate::bench
