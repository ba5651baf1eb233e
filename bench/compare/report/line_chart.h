// Lines against two axes.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/svg.h"

namespace syncopate::bench {

enum class CurveStyle {
  kSeed,       // one run: thin
  kFailed,     // a run that failed: thin and broken
  kMean,       // over seeds: thick, with a few markers
  kMeasured,   // thick, a marker at every point
  kDots,       // no line: a small marker at every point
  kReference,  // nobody's: dashed, in the colour of the letters
};

struct Curve {
  std::size_t series = 0;
  CurveStyle style = CurveStyle::kMean;
  std::vector<Point> points;  // what is not finite is left out
};

struct LineChart {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Curve> curves;  // later ones on top
};

// Of all plots that stand alone.
inline constexpr double kPlotWidth = 420.0;
inline constexpr double kPlotHeight = 280.0;

std::string draw(const LineChart& chart);

}  // namespace syncopate::bench
