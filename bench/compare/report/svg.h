// Drawing in SVG, and the frame with axes that every plot has. Colours, strokes and letters are
// classes, which the page's style sheet (style.h) defines for light, dark and paper.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/report/axis.h"

namespace syncopate::bench {

struct Point {
  double x = 0.0;
  double y = 0.0;
};

// In units of the view box, y downwards. Text is made harmless here; classes are ours.
class Svg {
 public:
  // Pieces to be put into something else: see body().
  Svg() = default;
  // A plot. `title` is for those who cannot see it.
  Svg(double width, double height, std::string_view title);

  void line(Point from, Point to, std::string_view classes);
  void polyline(const std::vector<Point>& points, std::string_view classes);
  void rectangle(Point corner, double width, double height, std::string_view classes);
  // `tip` is shown while the pointer rests on it; may be empty.
  void rectangle(Point corner, double width, double height, std::string_view classes,
                 std::string_view tip);
  // anchor: "start", "middle" or "end".
  void text(Point at, std::string_view text, std::string_view anchor, std::string_view classes);
  // Shape number i of a few that are told apart without colour.
  void marker(Point at, std::size_t shape, double size, std::string_view classes);
  const std::string& body() const noexcept { return body_; }
  std::string finish() const { return head_ + body_ + "</svg>"; }

 private:
  std::string head_;
  std::string body_;
};

// About as wide as the text is drawn, at the largest letters that the page gives a plot.
double text_width(std::string_view text);

// How a series is told from others: colour and marker, and dashes once colours are used up.
std::string series_classes(std::size_t series);
std::size_t series_marker(std::size_t series);

// Two axes around an area: titles, ticks, thin lines at the ticks of y.
class Frame {
 public:
  // Draws it. `top` and the margins beyond the labels are its own choice.
  Frame(Svg& svg, double width, double height, Axis x, Axis y);

  Point at(double x, double y) const;
  Point corner() const noexcept { return {left_, top_}; }
  double width() const noexcept { return width_; }
  double height() const noexcept { return height_; }

 private:
  void draw_x(Svg& svg) const;
  void draw_y(Svg& svg) const;

  Axis x_;
  Axis y_;
  double left_ = 0.0;
  double top_ = 0.0;
  double width_ = 0.0;
  double height_ = 0.0;
};

// As many ticks as fit beside each other in so much room, from `make(most)`.
template <typename Make>
Axis fitting_axis(double room, Make make) {
  constexpr int kMostTicks = 7;
  constexpr double kGap = 12.0;
  for (int most = kMostTicks; most > 1; --most) {
    const Axis axis = make(most);
    double widest = 0.0;
    for (const std::string& text : tick_texts(axis)) widest = std::max(widest, text_width(text));
    if ((widest + kGap) * static_cast<double>(axis.ticks.size()) <= room) return axis;
  }
  return make(1);
}

}  // namespace syncopate::bench
