// Draws the images of the `digits` data set. An image has a glyph with jittered points, transformed
// by a random affine map and drawn with a pen of random width, and stray marks and noise. The
// pixels depend on (seed, split, index) only. They are bit-identical on every machine, because the
// painter uses no libm function except sqrt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate {

// The strokes of handwritten digits, which the painter bends, thickens and draws. Coordinates are
// in percent of a box; x grows to the right and y downwards.

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

// Returns two to four glyphs of each digit, ordered by digit.
std::vector<Glyph> digit_glyphs();

// Draws digits. Immutable after construction, so several threads may use one painter.
class DigitPainter {
 public:
  static constexpr int kSide = 28;  // width and height in pixels
  static constexpr int kPixels = kSide * kSide;

  explicit DigitPainter(std::uint64_t seed);

  // Draws image `index` of a split (0 train, 1 test) into pixels [28 * 28]; returns the digit.
  int paint(std::uint32_t split, std::uint32_t index, std::span<std::uint8_t> pixels) const;

 private:
  std::uint64_t seed_;
  std::vector<std::vector<Glyph>> glyphs_of_digit_;
};

}  // namespace syncopate
