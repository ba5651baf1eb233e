#include "worker/input/crop_flip.h"

#include <algorithm>
#include <cstring>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {

CropFlip draw_crop_flip(std::uint64_t seed, std::int64_t epoch,
                        std::int64_t sample_index) noexcept {
  const RandomStream random(seed, hash_name("crop-flip") + static_cast<std::uint64_t>(epoch));
  const auto words = random.block(static_cast<std::uint64_t>(sample_index));
  const auto shift = [](std::uint32_t word) {
    return static_cast<int>((std::uint64_t{word} * (2 * kCropPadding + 1)) >> 32) - kCropPadding;
  };
  return {shift(words[0]), shift(words[1]), (words[2] >> 31) != 0};
}

void apply_crop_flip(const CropFlip& crop, const Shape& shape, std::span<const std::uint8_t> source,
                     std::span<std::uint8_t> target) {
  check(shape.size() == 3, "crop-flip works on [H, W, C] images");
  const std::int64_t height = shape[0];
  const std::int64_t width = shape[1];
  const std::int64_t channels = shape[2];
  const auto bytes = static_cast<std::size_t>(height * width * channels);
  check(source.size() == bytes && target.size() == bytes, "crop-flip: an image of another size");
  // Columns of the crop that lie in the image; the rest is padding.
  const std::int64_t first = std::clamp<std::int64_t>(-crop.dx, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(width - crop.dx, first, width);
  for (std::int64_t y = 0; y < height; ++y) {
    std::uint8_t* row = target.data() + y * width * channels;
    const std::int64_t from_y = y + crop.dy;
    if (from_y < 0 || from_y >= height) {
      std::memset(row, 0, static_cast<std::size_t>(width * channels));
      continue;
    }
    const std::uint8_t* from = source.data() + (from_y * width + first + crop.dx) * channels;
    std::memset(row, 0, static_cast<std::size_t>(first * channels));
    std::memcpy(row + first * channels, from, static_cast<std::size_t>((last - first) * channels));
    std::memset(row + last * channels, 0, static_cast<std::size_t>((width - last) * channels));
    if (!crop.flip) continue;
    for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
    }
  }
}

}  // namespace syncopate
