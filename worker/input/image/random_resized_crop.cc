#include "worker/input/image/random_resized_crop.h"

#include <cmath>

#include "models/base/random.h"

namespace syncopate {
namespace {

constexpr double kLeastArea = 0.08;
constexpr double kLeastRatio = 3.0 / 4.0;
constexpr double kMostRatio = 4.0 / 3.0;
constexpr double kLogMostRatio = 0.28768207245178093;  // = -log(kLeastRatio)
constexpr int kAttempts = 10;

// e^x for |x| < 0.3, by its series. std::exp has other last bits on other machines.
double exponential(double x) noexcept {
  double sum = 1.0;
  for (int i = 14; i > 0; --i) sum = 1.0 + sum * x / i;
  return sum;
}

double uniform(std::uint32_t word) noexcept { return word * 0x1p-32; }

std::int64_t below(std::uint32_t word, std::int64_t bound) noexcept {
  return static_cast<std::int64_t>((std::uint64_t{word} * static_cast<std::uint64_t>(bound)) >> 32);
}

std::int64_t rounded(double value) noexcept {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

}  // namespace

PixelRectangle random_resized_crop(std::uint64_t bits, std::int64_t width,
                                   std::int64_t height) noexcept {
  const RandomStream random(bits, hash_name("random-resized-crop"));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto words = random.block(attempt);
    const double area = static_cast<double>(width) * static_cast<double>(height) *
                        (kLeastArea + (1.0 - kLeastArea) * uniform(words[0]));
    const double ratio = exponential(kLogMostRatio * (2.0 * uniform(words[1]) - 1.0));
    const std::int64_t part_width = rounded(std::sqrt(area * ratio));
    const std::int64_t part_height = rounded(std::sqrt(area / ratio));
    if (part_width < 1 || part_width > width || part_height < 1 || part_height > height) continue;
    return {below(words[2], width - part_width + 1), below(words[3], height - part_height + 1),
            part_width, part_height};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  PixelRectangle part = {0, 0, width, height};
  if (ratio < kLeastRatio) {
    part.height = rounded(static_cast<double>(width) / kLeastRatio);
  } else if (ratio > kMostRatio) {
    part.width = rounded(static_cast<double>(height) * kMostRatio);
  }
  part.x = (width - part.width) / 2;
  part.y = (height - part.height) / 2;
  return part;
}

}  // namespace syncopate
