// Line charts and bar charts. The legend is part of the picture, so that the picture is complete as
// a file.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plots/axis.h"
#include "bench/plots/picture.h"

namespace syncopate::bench {

inline constexpr double kPlotWidth = 440.0;
inline constexpr double kPlotHeight = 300.0;  // without a legend below the plot
// The width that the labels of an x axis may take together in a plot of width kPlotWidth.
inline constexpr double kRoomForX = kPlotWidth - 70.0;

// The colours of the parts of a plot. Colour-blind readers can distinguish these colours. Source:
// M. Okabe, K. Ito, Color Universal Design (2008).
namespace colour {
inline constexpr std::string_view kBlue = "#0072b2";
inline constexpr std::string_view kRed = "#d55e00";
inline constexpr std::string_view kGreen = "#009e73";
inline constexpr std::string_view kPurple = "#b5588f";
inline constexpr std::string_view kOrange = "#e69f00";
inline constexpr std::string_view kSky = "#56b4e9";
inline constexpr std::string_view kGrey = "#6e6e6e";
}  // namespace colour

struct Marker {
  std::size_t shape = 0;  // as in Picture::marker()
  double radius = 0.0;    // 0: no markers
};

struct Curve {
  std::vector<Point> points{};  // points with NaN or infinity are left out
  std::string_view stroke = colour::kInk;
  double width = 2.0;  // 0: only markers
  std::string_view dash{};
  Marker marker{};     // drawn at about twelve of the points
  std::string name{};  // the name in the legend; "": not in the legend
};

// Returns a curve without points that has the colour, dashes and marker of series number `index`.
// Series can also be distinguished without colour. Where curves overlap, the gaps between dashes
// show the curve below.
Curve series_curve(std::size_t index, const std::string& name);

// The smallest and the largest finite value of one coordinate (x or y) of curves. If there is no
// finite value, low > high.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};
Extent extent_of(const std::vector<Curve>& curves, double Point::*coordinate);

// A value of y to mark with a dashed line, and the text at the line.
struct Level {
  double y = 0.0;
  std::string text;
};

// A line chart. The title of the y axis stands above the plot, and the title of the x axis at the
// end of this axis.
struct LineChart {
  std::string title;  // for screen readers
  Axis x{};
  Axis y{};                     // curves are cut off below y.low
  std::vector<Curve> curves{};  // the last one is drawn on top
  std::optional<Level> level{};
  double height = kPlotHeight;
  bool is_narrow = false;          // for a phone
  bool has_legend_inside = false;  // at the lower right, where rising curves leave room
};

Picture draw(const LineChart& chart);

struct Segment {
  double value = 0.0;
  std::string_view fill;
  std::string tip{};  // shown while the pointer rests on the segment
};

struct BarRow {
  std::string label;                // above the bar; "": another bar of the previous row
  std::vector<Segment> segments{};  // side by side
  std::vector<double> dots{};       // a dot for each run
  std::string note{};               // text to the right of the bar
};

struct FillName {
  std::string_view fill;
  std::string name;
};

// A chart of horizontal bars. A label stands above its bars, so that it may be long.
struct BarChart {
  std::string title;       // for screen readers
  std::string axis_title;  // with the unit
  std::vector<BarRow> rows{};
  std::vector<FillName> legend{};
  std::string key{};  // explains bars and dots
};

Picture draw(const BarChart& chart);

}  // namespace syncopate::bench
