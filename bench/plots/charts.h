// Bar charts, stacked charts and line charts as SVG.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/plots/svg.h"

namespace syncopate::bench {

// The size of a chart that stands alone, and the width of one of several panels side by side.
inline constexpr double kPlotWidth = 420.0;
inline constexpr double kPlotHeight = 280.0;
inline constexpr double kPanelWidth = 300.0;

enum class CurveStyle : std::uint8_t {
  kSeed,       // one run: a thin line
  kFailed,     // a run that failed: a thin dashed line
  kMean,       // the mean over seeds: a thick line with a few markers
  kMeasured,   // a thick line with a marker at every point
  kDots,       // a small marker at every point, without a line
  kReference,  // a dashed line in the text colour, for a target or an ideal
};

struct Curve {
  std::size_t series = 0;
  CurveStyle style = CurveStyle::kMean;
  std::vector<Point> points;  // points with NaN or infinity are left out
};

struct LineChart {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Curve> curves;  // drawn in this order, the last on top
};

std::string draw(const LineChart& chart);

struct Bar {
  std::optional<double> value;      // the bar's length; empty: only dots and note are drawn
  std::optional<double> deviation;  // standard deviation: whiskers to both sides
  std::vector<double> dots;         // one small mark per run
  std::string note;                 // text behind the bar
  std::string classes;              // CSS classes that give the bar its colour
};

struct BarGroup {
  std::string label;
  std::vector<Bar> bars;
};

// A chart of horizontal bars. A group's label stands above its bars, so that it may be long.
struct BarChart {
  std::string title;
  std::string axis_title;  // title of the value axis with its unit
  std::vector<BarGroup> groups;
};

std::string draw(const BarChart& chart);

struct StackedRow {
  std::string label;           // name of the row, a few characters
  std::vector<double> shares;  // parts of the row, each in [0, 1]
};

// Draws the parts of a whole, one horizontal bar per row, at the size of a panel.
struct StackedChart {
  std::string title;
  std::string label_title;  // what a row is, such as "worker"
  std::string axis_title;
  std::vector<std::string> part_names;
  std::vector<std::string> part_classes;
  std::vector<StackedRow> rows;
};

std::string draw(const StackedChart& chart);

}  // namespace syncopate::bench
