#include "worker/input/digit_painter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

constexpr int kSide = DigitPainter::kSide;
constexpr int kPixels = DigitPainter::kPixels;

// How far images of one digit differ. Chosen so that a linear model stays well under 93% while
// mnist-cnn passes 98% (README.md, Decisions).
constexpr float kPointJitter = 8.0F;     // percent of the box
constexpr float kRotation = 0.14F;       // tangent of half the angle: +- 15 degrees
constexpr float kShear = 0.25F;          //
constexpr float kSmallestScale = 0.16F;  // pixels per percent
constexpr float kLargestScale = 0.21F;   //
constexpr float kShift = 2.2F;           // pixels
constexpr float kThinnestPen = 0.6F;     // radius in pixels
constexpr float kThickestPen = 1.6F;     //
constexpr float kFaintestInk = 0.6F;     // of full white
constexpr std::uint32_t kMostMarks = 3;  // stray marks: 0 .. kMostMarks
constexpr float kMarkInk = 0.8F;         // of the digit's ink
constexpr float kStrongestNoise = 0.3F;  // of full white, peak
constexpr int kPiecesPerSpan = 5;        // segments that stand for one span of a curve

// One image's random numbers, in the order they are asked for.
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

// From percent of the glyph's box to pixels.
struct AffineMap {
  float xx, xy, x0;
  float yx, yy, y0;

  StrokePoint operator()(StrokePoint p) const {
    return {xx * p.x + xy * p.y + x0, yx * p.x + yy * p.y + y0};
  }
};

AffineMap draw_affine_map(Draws& draws) {
  // The rational form of (cos, sin) needs no libm.
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
  // The box's centre goes to the image's centre, give or take the shift.
  const float center = 0.5F * static_cast<float>(kSide - 1);
  map.x0 = center + draws.between(-kShift, kShift) - 50.0F * (map.xx + map.xy);
  map.y0 = center + draws.between(-kShift, kShift) - 50.0F * (map.yx + map.yy);
  return map;
}

// Where the ink is: per pixel the squared distance to the nearest stroke, as far as the pen
// reaches.
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

  // Catmull-Rom through all points, cut into straight pieces.
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

  // 1 inside the pen, 0 outside, a ramp of one pixel between.
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

// Short straight marks anywhere: scratches on the paper.
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
    // The sum of two bytes: a triangle around 255.
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
