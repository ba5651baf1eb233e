#include "bench/plots/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr double kLabelHeight = 17.0;
constexpr double kBarHeight = 14.0;
constexpr double kBarGap = 3.0;
constexpr double kGroupGap = 8.0;
constexpr double kAxisHeight = 40.0;

std::string curve_classes(const Curve& curve) {
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

std::vector<Point> finite_points(const PlotFrame& frame, const std::vector<Point>& points) {
  std::vector<Point> drawn;
  for (const Point& point : points) {
    if (std::isfinite(point.x) && std::isfinite(point.y))
      drawn.push_back(frame.at(point.x, point.y));
  }
  return drawn;
}

// Draws about five markers on a line, so that series can be told apart without colour. Different
// series have their markers at different points.
void draw_some_markers(Svg& svg, const Curve& curve, const std::vector<Point>& points) {
  constexpr std::size_t kMost = 5;
  const std::size_t stride = std::max<std::size_t>(1, points.size() / kMost);
  const std::size_t first = (curve.series * 2 + 1) % stride;
  for (std::size_t i = first; i < points.size(); i += stride) {
    svg.marker(points[i], series_marker(curve.series), 2.8, series_classes(curve.series) + " mark");
  }
}

void draw_curve(Svg& svg, const PlotFrame& frame, const Curve& curve) {
  const std::vector<Point> points = finite_points(frame, curve.points);
  if (curve.style != CurveStyle::kDots) svg.polyline(points, curve_classes(curve));
  if (curve.style == CurveStyle::kMean) draw_some_markers(svg, curve, points);
  if (curve.style != CurveStyle::kMeasured && curve.style != CurveStyle::kDots) return;
  const double size = curve.style == CurveStyle::kDots ? 1.8 : 3.2;
  for (const Point& point : points) {
    svg.marker(point, series_marker(curve.series), size, series_classes(curve.series) + " mark");
  }
}

// Returns the largest value that the bar, its whisker or its dots reach.
double reach_of(const Bar& bar) {
  double reach = bar.value.value_or(0.0) + bar.deviation.value_or(0.0);
  for (const double dot : bar.dots) reach = std::max(reach, dot);
  return reach;
}

// Returns the largest finite `measure(bar)` of all bars, at least 0.
template <typename Measure>
double greatest(const BarChart& chart, Measure measure) {
  double most = 0.0;
  for (const BarGroup& group : chart.groups) {
    for (const Bar& bar : group.bars) {
      const double value = measure(bar);
      if (std::isfinite(value)) most = std::max(most, value);
    }
  }
  return most;
}

double height_of(const BarChart& chart) {
  double height = kAxisHeight;
  for (const BarGroup& group : chart.groups) {
    const auto bars = static_cast<double>(group.bars.size());
    height += kLabelHeight + bars * (kBarHeight + kBarGap) + kGroupGap;
  }
  return height;
}

void draw_axis(Svg& svg, const Axis& axis, double left, double width, double top, double bottom) {
  const std::vector<std::string> texts = tick_texts(axis);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const double x = left + width * axis.place(axis.ticks[i]);
    svg.line({x, top}, {x, bottom}, "rule");
    svg.text({x, bottom + 15.0}, texts[i], "middle", "tick");
  }
  svg.line({left, bottom}, {left + width, bottom}, "axis");
  svg.text({left + width / 2, bottom + 34.0}, axis.title, "middle", "title");
}

// Maps a bar's values to positions along the x axis; negative values count as 0.
struct Along {
  const Axis& axis;
  double left;
  double width;
  double operator()(double value) const { return left + width * axis.place(std::max(0.0, value)); }
};

void draw_whiskers(Svg& svg, const Along& x, const Bar& bar, double middle) {
  const double low = x(*bar.value - *bar.deviation);
  const double high = x(*bar.value + *bar.deviation);
  svg.line({low, middle}, {high, middle}, "whisker");
  for (const double end : {low, high}) svg.line({end, middle - 3}, {end, middle + 3}, "whisker");
}

void draw_bar(Svg& svg, const Along& x, const Bar& bar, double top) {
  const double middle = top + kBarHeight / 2;
  if (bar.value) svg.rectangle({x.left, top}, x(*bar.value) - x.left, kBarHeight, bar.classes);
  if (bar.value && bar.deviation)
    draw_whiskers(svg, x, bar, bar.dots.empty() ? middle : middle - 2.5);
  for (const double dot : bar.dots) svg.marker({x(dot), middle + 4.0}, 0, 2.0, "dot");
  const double gap = reach_of(bar) > 0.0 ? 7.0 : 3.0;
  svg.text({x(reach_of(bar)) + gap, middle + 4.0}, bar.note, "start", "value");
}

std::size_t characters_in(double width) {
  return static_cast<std::size_t>(width / text_width("x"));
}

}  // namespace

std::string draw(const LineChart& chart) {
  Svg svg(kPlotWidth, kPlotHeight, chart.title);
  const PlotFrame frame(svg, kPlotWidth, kPlotHeight, chart.x, chart.y);
  for (const Curve& curve : chart.curves) draw_curve(svg, frame, curve);
  return svg.finish();
}

std::string draw(const BarChart& chart) {
  constexpr double kLeft = 12.0;  // room for half of the axis's first label
  const double height = height_of(chart);
  Svg svg(kPlotWidth, height, chart.title);
  const double note = greatest(chart, [](const Bar& bar) { return text_width(bar.note); });
  const double width = kPlotWidth - kLeft - note - 12.0;
  const double reach = greatest(chart, reach_of);
  const Axis axis = fitting_axis(width, [&](int most) {
    return linear_axis(chart.axis_title, 0.0, reach > 0.0 ? reach : 1.0, most, false);
  });
  draw_axis(svg, axis, kLeft, width, 2.0, height - kAxisHeight);
  const Along x{axis, kLeft, width};
  double top = 0.0;
  for (const BarGroup& group : chart.groups) {
    svg.text({kLeft, top + kLabelHeight - 4.0},
             shortened(group.label, characters_in(kPlotWidth - 2 * kLeft)), "start", "label");
    top += kLabelHeight;
    for (const Bar& bar : group.bars) {
      draw_bar(svg, x, bar, top);
      top += kBarHeight + kBarGap;
    }
    top += kGroupGap;
  }
  return svg.finish();
}

std::string draw(const StackedChart& chart) {
  constexpr double kTitle = 20.0;
  constexpr double kTallest = 16.0;
  constexpr double kAllRows = 240.0;
  const auto count = static_cast<double>(chart.rows.size());
  const double row_height = std::min(kTallest, kAllRows / std::max(1.0, count));
  // Draws a label at every row, or at every n-th where rows are thinner than letters.
  const auto stride = static_cast<std::size_t>(std::ceil(12.0 / row_height));
  double widest = 0.0;
  for (const StackedRow& row : chart.rows) widest = std::max(widest, text_width(row.label));
  const double left = widest + 6.0;
  const double width = kPanelWidth - left - 16.0;
  const double bottom = kTitle + count * row_height;
  Svg svg(kPanelWidth, bottom + kAxisHeight, chart.title);
  svg.text({2.0, 13.0}, chart.label_title, "start", "title");
  draw_axis(svg, linear_axis(chart.axis_title, 0.0, 100.0, 4, false), left, width, kTitle, bottom);
  for (std::size_t i = 0; i < chart.rows.size(); ++i) {
    const double top = kTitle + static_cast<double>(i) * row_height;
    if (i % stride == 0) {
      svg.text({left - 5.0, top + row_height / 2 + 4.0}, chart.rows[i].label, "end", "tick");
    }
    double x = left;
    for (std::size_t part = 0; part < chart.rows[i].shares.size(); ++part) {
      const double share = chart.rows[i].shares[part];
      const std::string tip = fmt::format("{} {}, {}: {} %", chart.label_title, chart.rows[i].label,
                                          chart.part_names[part], decimal_text(100 * share, 1));
      if (share > 0.0) {
        svg.rectangle({x, top + 1.0}, width * share, row_height - 2.0, chart.part_classes[part],
                      tip);
      }
      x += width * share;
    }
  }
  return svg.finish();
}

}  // namespace syncopate::bench
