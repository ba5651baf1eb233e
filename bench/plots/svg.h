// Draws SVG: shapes, text and the frame with two axes that plots share. Colours, strokes and fonts
// are CSS classes, which the page's style sheet (document.cc) defines for light, dark and paper.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/plots/axis.h"

namespace syncopate::bench {

struct Point {
  double x = 0.0;
  double y = 0.0;
};

// A drawing in units of its view box, y downwards. Text is escaped here; class names are trusted.
class Svg {
 public:
  // Makes shapes without an <svg> element, for use inside another drawing through body().
  Svg() = default;
  // Makes a whole drawing. Screen readers read `title`.
  Svg(double width, double height, std::string_view title);

  void line(Point from, Point to, std::string_view classes);
  void polyline(const std::vector<Point>& points, std::string_view classes);
  // Draws a rectangle. A non-empty `tip` is shown while the pointer rests on it.
  void rectangle(Point corner, double width, double height, std::string_view classes,
                 std::string_view tip = "");
  // Draws text at a point. anchor: "start", "middle" or "end".
  void text(Point at, std::string_view text, std::string_view anchor, std::string_view classes);
  // Draws marker number `shape` of a few that can be told apart without colour; 0 is a circle.
  void marker(Point at, std::size_t shape, double size, std::string_view classes);
  const std::string& body() const noexcept { return body_; }
  std::string finish() const { return head_ + body_ + "</svg>"; }

 private:
  std::string head_;
  std::string body_;
};

// The classes and the marker that distinguish a series from others: a colour, then dashes or dots
// when the colours are used up.
std::string series_classes(std::size_t series);
std::size_t series_marker(std::size_t series);

// A plot's frame: two axes around an area, with titles, ticks and thin lines at the ticks of y.
class PlotFrame {
 public:
  // Draws the frame into `svg`. The margins follow from the labels of the axes.
  PlotFrame(Svg& svg, double width, double height, Axis x, Axis y);

  Point at(double x, double y) const;

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

}  // namespace syncopate::bench
