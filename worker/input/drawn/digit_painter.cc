#include "worker/input/drawn/digit_painter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {

std::vector<Glyph> digit_glyphs() {
  constexpr StrokeKind kCurve = StrokeKind::kCurve;
  constexpr StrokeKind kPolyline = StrokeKind::kPolyline;
  return {
      // Glyphs of the digit 0: a closed oval; a narrow oval; an open oval that starts at the right.
      {0,
       {{kCurve,
         {{50, 4},
          {22, 20},
          {14, 50},
          {24, 82},
          {50, 96},
          {76, 82},
          {86, 50},
          {78, 20},
          {50, 4}}}}},
      {0,
       {{kCurve,
         {{54, 4},
          {34, 22},
          {28, 52},
          {34, 84},
          {52, 96},
          {66, 80},
          {72, 48},
          {68, 20},
          {54, 4}}}}},
      {0,
       {{kCurve,
         {{70, 12},
          {44, 6},
          {20, 30},
          {16, 64},
          {36, 94},
          {68, 90},
          {86, 58},
          {80, 24},
          {58, 8}}}}},
      // Glyphs of the digit 1: a bare stem; a stem with a flag; a stem with a flag and a foot.
      {1, {{kPolyline, {{50, 4}, {50, 96}}}}},
      {1, {{kPolyline, {{28, 26}, {52, 4}, {52, 96}}}}},
      {1, {{kPolyline, {{30, 22}, {50, 5}, {50, 95}}}, {kPolyline, {{28, 95}, {74, 95}}}}},
      // Glyphs of the digit 2: a straight foot; a loop at the foot; a round neck with a wavy foot.
      {2,
       {{kCurve, {{18, 26}, {34, 6}, {62, 5}, {80, 26}, {66, 54}, {18, 94}}},
        {kPolyline, {{18, 94}, {84, 94}}}}},
      {2,
       {{kCurve,
         {{20, 22},
          {48, 4},
          {76, 20},
          {66, 52},
          {32, 86},
          {18, 84},
          {30, 74},
          {56, 88},
          {86, 90}}}}},
      {2,
       {{kCurve, {{22, 14}, {56, 4}, {80, 18}, {76, 42}, {46, 64}, {20, 92}, {46, 84}, {84, 94}}}}},
      // Glyphs of the digit 3: two bows; a flat top with one bow.
      {3,
       {{kCurve,
         {{20, 14},
          {50, 4},
          {76, 18},
          {70, 40},
          {44, 48},
          {74, 56},
          {82, 76},
          {54, 96},
          {18, 86}}}}},
      {3,
       {{kPolyline, {{20, 6}, {78, 6}, {46, 42}}},
        {kCurve, {{46, 42}, {76, 52}, {80, 78}, {52, 96}, {18, 84}}}}},
      {3,
       {{kCurve, {{24, 8}, {62, 6}, {74, 24}, {40, 46}}},
        {kCurve, {{40, 46}, {78, 58}, {70, 90}, {20, 94}}}}},
      // Glyphs of the digit 4: an open top; a closed top; a long bar through the stem.
      {4, {{kPolyline, {{30, 5}, {18, 56}, {84, 56}}}, {kPolyline, {{68, 12}, {66, 96}}}}},
      {4, {{kPolyline, {{66, 96}, {66, 5}, {14, 66}, {88, 66}}}}},
      {4, {{kCurve, {{24, 10}, {20, 40}, {34, 54}, {74, 48}}}, {kPolyline, {{78, 6}, {70, 96}}}}},
      // Glyphs of the digit 5: an angular neck; a curved neck; the roof as a stroke of its own.
      {5,
       {{kPolyline, {{78, 6}, {28, 6}, {24, 44}}},
        {kCurve, {{24, 44}, {56, 38}, {80, 62}, {62, 92}, {18, 90}}}}},
      {5, {{kCurve, {{82, 8}, {40, 8}, {26, 40}, {64, 46}, {78, 72}, {52, 96}, {16, 84}}}}},
      {5,
       {{kPolyline, {{32, 8}, {28, 42}}},
        {kCurve, {{28, 42}, {66, 44}, {76, 74}, {48, 95}, {20, 86}}},
        {kPolyline, {{32, 8}, {84, 4}}}}},
      // Glyphs of the digit 6: a tall stem with a round belly; a nearly closed spiral.
      {6,
       {{kCurve, {{68, 4}, {34, 30}, {18, 66}, {34, 94}, {66, 94}, {80, 70}, {58, 50}, {26, 62}}}}},
      {6,
       {{kCurve, {{42, 4}, {26, 44}, {22, 82}, {50, 97}, {76, 82}, {66, 58}, {40, 58}, {24, 76}}}}},
      {6,
       {{kCurve, {{80, 14}, {52, 6}, {26, 32}, {20, 72}, {46, 96}, {78, 80}, {68, 54}, {30, 60}}}}},
      // Glyphs of the digit 7: a plain one; one with a bar through the stem; one with a bent stem.
      {7, {{kPolyline, {{16, 8}, {82, 8}, {42, 96}}}}},
      {7, {{kPolyline, {{18, 8}, {80, 8}, {44, 96}}}, {kPolyline, {{34, 50}, {78, 50}}}}},
      {7, {{kPolyline, {{18, 20}, {20, 8}}}, {kCurve, {{20, 8}, {80, 8}, {60, 44}, {50, 96}}}}},
      // Glyphs of the digit 8: drawn in one line; drawn as two rings.
      {8,
       {{kCurve,
         {{72, 14},
          {42, 4},
          {26, 24},
          {50, 46},
          {76, 72},
          {54, 96},
          {26, 80},
          {46, 50},
          {74, 26},
          {68, 10}}}}},
      {8,
       {{kCurve, {{50, 4}, {28, 24}, {50, 46}, {72, 24}, {50, 4}}},
        {kCurve, {{50, 46}, {22, 72}, {50, 96}, {78, 72}, {50, 46}}}}},
      // Glyphs of the digit 9: a ring with a straight stem, with a curved tail, or with a hook.
      {9,
       {{kCurve, {{74, 30}, {56, 6}, {26, 20}, {30, 48}, {58, 50}, {76, 28}}},
        {kPolyline, {{76, 10}, {70, 96}}}}},
      {9,
       {{kCurve, {{76, 22}, {48, 4}, {22, 24}, {36, 50}, {68, 44}, {78, 20}, {74, 60}, {46, 96}}}}},
      {9,
       {{kCurve,
         {{72, 16},
          {42, 6},
          {24, 30},
          {44, 52},
          {74, 36},
          {78, 12},
          {76, 62},
          {58, 94},
          {24, 88}}}}},
  };
}

namespace {

constexpr int kSide = DigitPainter::kSide;
constexpr int kPixels = DigitPainter::kPixels;

// The variation between images of one digit. Chosen so that a linear model stays well under 93%
// while mnist-cnn passes 98% (README.md, Decisions).
constexpr float kPointJitter = 8.0F;     // largest move of a stroke's point, in percent of the box
constexpr float kRotation = 0.14F;       // tangent of half the largest angle, 15 degrees
constexpr float kShear = 0.25F;          // largest horizontal move per vertical distance
constexpr float kSmallestScale = 0.16F;  // image pixels per percent of the box
constexpr float kLargestScale = 0.21F;   // image pixels per percent of the box
constexpr float kShift = 2.2F;           // largest move of the glyph, in pixels
constexpr float kThinnestPen = 0.6F;     // radius in pixels
constexpr float kThickestPen = 1.6F;     // radius in pixels
constexpr float kFaintestInk = 0.6F;     // least ink, as a part of full white
constexpr std::uint32_t kMostMarks = 3;  // stray marks: 0 .. kMostMarks
constexpr float kMarkInk = 0.8F;         // ink of a mark, as a part of the digit's ink
constexpr float kStrongestNoise = 0.3F;  // peak, as a part of full white
constexpr int kPiecesPerSpan = 5;        // segments that stand for one span of a curve

// Draws the random numbers of one image, in a fixed order.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream) : random_(seed, stream) {}

  std::uint32_t bits() {
    if (used_ == block_.size()) {
      block_ = random_.block(next_block_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  float between(float low, float high) {
    return low + (high - low) * (static_cast<float>(bits() >> 8) * 0x1p-24F);
  }
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{bits()} * bound) >> 32);
  }

 private:
  RandomStream random_;
  std::array<std::uint32_t, 4> block_{};
  std::size_t used_ = 4;
  std::uint64_t next_block_ = 0;
};

// Maps percent of the glyph's box to pixels.
struct AffineMap {
  float xx, xy, x0;
  float yx, yy, y0;

  StrokePoint operator()(StrokePoint p) const {
    return {xx * p.x + xy * p.y + x0, yx * p.x + yy * p.y + y0};
  }
};

AffineMap draw_affine_map(Draws& draws) {
  // The rational form of a rotation's (cos, sin) needs no libm function.
  const float t = draws.between(-kRotation, kRotation);
  const float cosine = (1.0F - t * t) / (1.0F + t * t);
  const float sine = 2.0F * t / (1.0F + t * t);
  const float scale_x = draws.between(kSmallestScale, kLargestScale);
  const float scale_y = draws.between(kSmallestScale, kLargestScale);
  const float shear = draws.between(-kShear, kShear);
  AffineMap map{};
  map.xx = cosine * scale_x;
  map.xy = (cosine * shear - sine) * scale_y;
  map.yx = sine * scale_x;
  map.yy = (sine * shear + cosine) * scale_y;
  // The centre of the glyph's box maps to the centre of the image plus the shift.
  const float center = 0.5F * static_cast<float>(kSide - 1);
  map.x0 = center + draws.between(-kShift, kShift) - 50.0F * (map.xx + map.xy);
  map.y0 = center + draws.between(-kShift, kShift) - 50.0F * (map.yx + map.yy);
  return map;
}

// A canvas: the squared distance of each pixel to the nearest stroke, within the reach of the pen.
class Canvas {
 public:
  explicit Canvas(float pen_radius) : reach_(pen_radius + 1.0F), radius_(pen_radius) {
    squared_distance_.fill(reach_ * reach_);
  }

  void segment(StrokePoint a, StrokePoint b) {
    const float dx = b.x - a.x;
    const float dy = b.y - a.y;
    const float length2 = dx * dx + dy * dy;
    const float inverse = length2 > 1e-12F ? 1.0F / length2 : 0.0F;
    const int left = first_pixel(std::min(a.x, b.x));
    const int right = last_pixel(std::max(a.x, b.x));
    const int top = first_pixel(std::min(a.y, b.y));
    const int bottom = last_pixel(std::max(a.y, b.y));
    for (int y = top; y <= bottom; ++y) {
      float* row = squared_distance_.data() + y * kSide;
      const float py = static_cast<float>(y) - a.y;
      for (int x = left; x <= right; ++x) {
        const float px = static_cast<float>(x) - a.x;
        const float along = std::min(std::max((px * dx + py * dy) * inverse, 0.0F), 1.0F);
        const float ex = px - along * dx;
        const float ey = py - along * dy;
        row[x] = std::min(row[x], ex * ex + ey * ey);
      }
    }
  }

  // Adds a Catmull-Rom spline through all points, cut into straight segments.
  void curve(std::span<const StrokePoint> points) {
    const std::size_t n = points.size();
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const StrokePoint p0 = points[i == 0 ? 0 : i - 1];
      const StrokePoint p1 = points[i];
      const StrokePoint p2 = points[i + 1];
      const StrokePoint p3 = points[i + 2 < n ? i + 2 : n - 1];
      StrokePoint from = p1;
      for (int piece = 1; piece <= kPiecesPerSpan; ++piece) {
        const float t = static_cast<float>(piece) / static_cast<float>(kPiecesPerSpan);
        const StrokePoint to{spline(p0.x, p1.x, p2.x, p3.x, t), spline(p0.y, p1.y, p2.y, p3.y, t)};
        segment(from, to);
        from = to;
      }
    }
  }

  // The ink is 1 inside the pen and 0 outside, with a ramp of one pixel between.
  float coverage(int pixel) const {
    const float distance = std::sqrt(squared_distance_[static_cast<std::size_t>(pixel)]);
    return std::min(std::max(radius_ + 0.5F - distance, 0.0F), 1.0F);
  }

 private:
  static float spline(float a, float b, float c, float d, float t) {
    return b + 0.5F * t *
                   ((c - a) +
                    t * ((2.0F * a - 5.0F * b + 4.0F * c - d) + t * (3.0F * (b - c) + (d - a))));
  }
  int first_pixel(float low) const {
    return std::max(0, static_cast<int>(std::max(low - reach_, 0.0F)));
  }
  int last_pixel(float high) const {
    return std::min(kSide - 1, static_cast<int>(std::max(high + reach_, -1.0F)));
  }

  float reach_;
  float radius_;
  std::array<float, kPixels> squared_distance_;
};

void draw_glyph(const Glyph& glyph, const AffineMap& map, Draws& draws, Canvas& canvas) {
  std::array<StrokePoint, 16> points;
  for (const Stroke& stroke : glyph.strokes) {
    const std::size_t n = std::min(stroke.points.size(), points.size());
    for (std::size_t i = 0; i < n; ++i) {
      const float x = stroke.points[i].x + draws.between(-kPointJitter, kPointJitter);
      const float y = stroke.points[i].y + draws.between(-kPointJitter, kPointJitter);
      points[i] = map({x, y});
    }
    const std::span<const StrokePoint> drawn(points.data(), n);
    if (stroke.kind == StrokeKind::kCurve) {
      canvas.curve(drawn);
    } else {
      for (std::size_t i = 0; i + 1 < n; ++i) canvas.segment(drawn[i], drawn[i + 1]);
    }
  }
}

// Draws short straight marks at random places of the image, as noise.
void draw_marks(Draws& draws, Canvas& canvas) {
  const std::uint32_t marks = draws.below(kMostMarks + 1);
  for (std::uint32_t i = 0; i < marks; ++i) {
    const float side = static_cast<float>(kSide);
    const StrokePoint from{draws.between(0.0F, side), draws.between(0.0F, side)};
    const StrokePoint to{from.x + draws.between(-6.0F, 6.0F), from.y + draws.between(-6.0F, 6.0F)};
    canvas.segment(from, to);
  }
}

}  // namespace

DigitPainter::DigitPainter(std::uint64_t seed) : seed_(seed), glyphs_of_digit_(10) {
  for (Glyph& glyph : digit_glyphs()) {
    glyphs_of_digit_.at(static_cast<std::size_t>(glyph.digit)).push_back(std::move(glyph));
  }
}

int DigitPainter::paint(std::uint32_t split, std::uint32_t index,
                        std::span<std::uint8_t> pixels) const {
  check(pixels.size() == kPixels, "a digit has 28 * 28 pixels");
  Draws draws(seed_, (std::uint64_t{split} << 32) | index);
  const std::uint32_t digit = draws.below(10);
  const std::vector<Glyph>& glyphs = glyphs_of_digit_[digit];
  const Glyph& glyph = glyphs[draws.below(static_cast<std::uint32_t>(glyphs.size()))];
  const AffineMap map = draw_affine_map(draws);
  Canvas writing(draws.between(kThinnestPen, kThickestPen));
  draw_glyph(glyph, map, draws, writing);
  Canvas marks(0.6F);
  draw_marks(draws, marks);

  const float ink = draws.between(kFaintestInk, 1.0F);
  const float noise = draws.between(0.0F, kStrongestNoise) / 128.0F;
  std::uint32_t word = 0;
  for (int i = 0; i < kPixels; ++i) {
    if (i % 2 == 0) word = draws.bits();
    // Noise is the sum of two random bytes: a triangle distribution around 255.
    const int sum = static_cast<int>(word & 0xFFU) + static_cast<int>((word >> 8) & 0xFFU);
    word >>= 16;
    const float covered = std::max(writing.coverage(i), kMarkInk * marks.coverage(i));
    const float value = ink * covered + noise * 0.5F * static_cast<float>(sum - 255);
    pixels[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(std::min(std::max(value, 0.0F), 1.0F) * 255.0F + 0.5F);
  }
  return static_cast<int>(digit);
}

}  // namespace syncopate
