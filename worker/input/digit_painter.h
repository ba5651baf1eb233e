// Draws one image of the `digits` dataset: a glyph with jittered points under a random affine map,
// a pen of random width, stray marks and noise. A pure function of (seed, split, index), with no
// libm function but sqrt, so that the pixels are the same bits on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate {

// How people write the ten digits: the strokes that digit_painter bends, thickens and draws.
// Coordinates are percent of a box, x to the right, y down.

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

// Immutable after construction: one painter may draw on many threads.
class DigitPainter {
 public:
  static constexpr int kSide = 28;  // pixels
  static constexpr int kPixels = kSide * kSide;

  explicit DigitPainter(std::uint64_t seed);

  // Draws image `index` of a split (0 train, 1 test) into pixels [28 * 28]; returns the digit.
  int paint(std::uint32_t split, std::uint32_t index, std::span<std::uint8_t> pixels) const;

 private:
  std::uint64_t seed_;
  std::vector<std::vector<Glyph>> glyphs_of_digit_;
};

}  // namespace syncopate
