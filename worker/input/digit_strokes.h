// How people write the ten digits: the strokes that digit_painter bends, thickens and draws.
// Coordinates are percent of a box, x to the right, y down.
#pragma once

#include <vector>

namespace syncopate {

struct StrokePoint {
  float x = 0.0F;
  float y = 0.0F;
};

enum class StrokeKind { kCurve, kPolyline };

struct Stroke {
  StrokeKind kind;
  std::vector<StrokePoint> points;  // a curve passes through all of them
};

struct Glyph {
  int digit;
  std::vector<Stroke> strokes;
};

// Two to four ways to write each digit, ordered by digit.
std::vector<Glyph> digit_glyphs();

}  // namespace syncopate
