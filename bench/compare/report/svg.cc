#include "bench/compare/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

constexpr std::size_t kColours = 7;
constexpr double kTitleHeight = 20.0;  // of y's title, above the area
constexpr double kBelow = 42.0;        // x's ticks and title
constexpr double kTickGap = 6.0;       // between a tick's text and the area
constexpr double kLeastRightMargin = 10.0;

// Corners of a marker of size 1 around the origin; none: a circle.
using Shape = std::vector<Point>;
const Shape& shape(std::size_t number) {
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

// Half of the last tick's text may stand out beyond the end of the axis.
double half_of_last(const Axis& axis) {
  const std::vector<std::string> texts = tick_texts(axis);
  return texts.empty() ? 0.0 : text_width(texts.back()) / 2;
}

std::string joined(const std::vector<Point>& points) {
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
  body_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>", joined(points), classes);
}

void Svg::rectangle(Point corner, double width, double height, std::string_view classes) {
  rectangle(corner, width, height, classes, "");
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
  if (shape(number).empty()) {
    body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"/>", at.x,
                         at.y, size, classes);
    return;
  }
  std::vector<Point> corners;
  for (const Point& corner : shape(number)) {
    corners.push_back({at.x + size * corner.x, at.y + size * corner.y});
  }
  body_ += fmt::format("<polygon points=\"{}\" class=\"{}\"/>", joined(corners), classes);
}

double text_width(std::string_view text) {
  constexpr double kPerCharacter = 6.9;
  return kPerCharacter * static_cast<double>(width_of(text));
}

std::string series_classes(std::size_t series) {
  return fmt::format("s{}{}", series % kColours,
                     series / kColours == 0   ? ""
                     : series / kColours == 1 ? " dashed"
                                              : " dotted");
}

std::size_t series_marker(std::size_t series) { return series % kColours; }

Frame::Frame(Svg& svg, double width, double height, Axis x, Axis y)
    : x_(std::move(x)), y_(std::move(y)) {
  double widest = 0.0;
  for (const std::string& text : tick_texts(y_)) widest = std::max(widest, text_width(text));
  left_ = widest + kTickGap + 2.0;
  top_ = kTitleHeight + 8.0;
  width_ = width - left_ - std::max(kLeastRightMargin, half_of_last(x_));
  height_ = height - top_ - kBelow;
  draw_y(svg);
  draw_x(svg);
}

Point Frame::at(double x, double y) const {
  return {left_ + width_ * x_.place(x), top_ + height_ * (1.0 - y_.place(y))};
}

void Frame::draw_x(Svg& svg) const {
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

void Frame::draw_y(Svg& svg) const {
  const std::vector<std::string> texts = tick_texts(y_);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const double y = top_ + height_ * (1.0 - y_.place(y_.ticks[i]));
    svg.line({left_, y}, {left_ + width_, y}, "rule");
    svg.text({left_ - kTickGap, y + 4.0}, texts[i], "end", "tick");
  }
  // Above the axis rather than along it: read without turning the head.
  svg.text({2.0, kTitleHeight - 7.0}, y_.title, "start", "title");
}

}  // namespace syncopate::bench
