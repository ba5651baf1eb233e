#include "bench/plots/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr std::size_t kColours = 7;
constexpr double kTitleHeight = 20.0;  // height of the y axis's title above the plot area
constexpr double kBelow = 42.0;        // height of the ticks and the title of the x axis
constexpr double kTickGap = 6.0;       // between a tick's label and the plot area
constexpr double kLeastRightMargin = 10.0;

// The corners of a marker of size 1 around the origin; a circle has no corners.
using Shape = std::vector<Point>;
const Shape& marker_shape(std::size_t number) {
  static const std::array<Shape, kColours> kShapes = {
      Shape{},
      Shape{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
      Shape{{0, -1.2}, {1.15, 0.9}, {-1.15, 0.9}},
      Shape{{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
      Shape{{0, 1.2}, {1.15, -0.9}, {-1.15, -0.9}},
      Shape{{-0.4, -1.2},
            {0.4, -1.2},
            {0.4, -0.4},
            {1.2, -0.4},
            {1.2, 0.4},
            {0.4, 0.4},
            {0.4, 1.2},
            {-0.4, 1.2},
            {-0.4, 0.4},
            {-1.2, 0.4},
            {-1.2, -0.4},
            {-0.4, -0.4}},
      Shape{{-1.2, -0.5}, {1.2, -0.5}, {1.2, 0.5}, {-1.2, 0.5}}};
  return kShapes[number % kColours];
}

std::string points_attribute(const std::vector<Point>& points) {
  std::string text;
  for (const Point& point : points) text += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

Svg::Svg(double width, double height, std::string_view title) {
  head_ = fmt::format(
      "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "role=\"img\" aria-label=\"{}\">",
      width, height, html_text(title));
}

void Svg::line(Point from, Point to, std::string_view classes) {
  body_ +=
      fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>",
                  from.x, from.y, to.x, to.y, classes);
}

void Svg::polyline(const std::vector<Point>& points, std::string_view classes) {
  if (points.empty()) return;
  body_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>", points_attribute(points), classes);
}

void Svg::rectangle(Point corner, double width, double height, std::string_view classes,
                    std::string_view tip) {
  body_ +=
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"",
                  corner.x, corner.y, std::max(0.0, width), std::max(0.0, height), classes);
  body_ += tip.empty() ? "/>" : fmt::format("><title>{}</title></rect>", html_text(tip));
}

void Svg::text(Point at, std::string_view text, std::string_view anchor, std::string_view classes) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>",
                       at.x, at.y, anchor, classes, html_text(text));
}

void Svg::marker(Point at, std::size_t number, double size, std::string_view classes) {
  if (marker_shape(number).empty()) {
    body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"/>", at.x,
                         at.y, size, classes);
    return;
  }
  std::vector<Point> corners;
  for (const Point& corner : marker_shape(number)) {
    corners.push_back({at.x + size * corner.x, at.y + size * corner.y});
  }
  body_ += fmt::format("<polygon points=\"{}\" class=\"{}\"/>", points_attribute(corners), classes);
}

std::string series_classes(std::size_t series) {
  return fmt::format("s{}{}", series % kColours,
                     series / kColours == 0   ? ""
                     : series / kColours == 1 ? " dashed"
                                              : " dotted");
}

std::size_t series_marker(std::size_t series) { return series % kColours; }

PlotFrame::PlotFrame(Svg& svg, double width, double height, Axis x, Axis y)
    : x_(std::move(x)), y_(std::move(y)) {
  left_ = widest_tick(y_) + kTickGap + 2.0;
  top_ = kTitleHeight + 8.0;
  // Half of the x axis's last label may stand out beyond the end of the axis.
  const std::vector<std::string> texts = tick_texts(x_);
  const double last = texts.empty() ? 0.0 : text_width(texts.back()) / 2;
  width_ = width - left_ - std::max(kLeastRightMargin, last);
  height_ = height - top_ - kBelow;
  draw_y(svg);
  draw_x(svg);
}

Point PlotFrame::at(double x, double y) const {
  return {left_ + width_ * x_.place(x), top_ + height_ * (1.0 - y_.place(y))};
}

void PlotFrame::draw_x(Svg& svg) const {
  const double bottom = top_ + height_;
  svg.line({left_, bottom}, {left_ + width_, bottom}, "axis");
  const std::vector<std::string> texts = tick_texts(x_);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const double x = left_ + width_ * x_.place(x_.ticks[i]);
    svg.line({x, bottom}, {x, bottom + 4.0}, "axis");
    svg.text({x, bottom + 17.0}, texts[i], "middle", "tick");
  }
  svg.text({left_ + width_ / 2, bottom + 36.0}, x_.title, "middle", "title");
}

void PlotFrame::draw_y(Svg& svg) const {
  const std::vector<std::string> texts = tick_texts(y_);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const double y = top_ + height_ * (1.0 - y_.place(y_.ticks[i]));
    svg.line({left_, y}, {left_ + width_, y}, "rule");
    svg.text({left_ - kTickGap, y + 4.0}, texts[i], "end", "tick");
  }
  // The y axis's title stands above the axis, not along it, so that it reads horizontally.
  svg.text({2.0, kTitleHeight - 7.0}, y_.title, "start", "title");
}

}  // namespace syncopate::bench
