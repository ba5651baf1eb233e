#include "worker/input/draw.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {

Draw make_draw(Augment kind, std::uint64_t seed, std::int64_t epoch,
               std::int64_t sample_index) noexcept {
  if (kind == Augment::kNone) return {};
  const RandomStream random(seed, hash_name("crop-flip") + static_cast<std::uint64_t>(epoch));
  const auto words = random.block(static_cast<std::uint64_t>(sample_index));
  const auto shift = [](std::uint32_t word) {
    return static_cast<int>((std::uint64_t{word} * (2 * kCropPadding + 1)) >> 32) - kCropPadding;
  };
  return {kind, shift(words[0]), shift(words[1]), (words[2] >> 31) != 0};
}

namespace {

void crop_and_flip(const Draw& draw, const TensorSpec& image, std::span<const std::byte> source,
                   std::span<std::byte> target) {
  check(image.shape.size() == 3, "crop-flip works on [H, W, C] images");
  const std::int64_t height = image.shape[0];
  const std::int64_t width = image.shape[1];
  const auto pixel_bytes = image.shape[2] * static_cast<std::int64_t>(size_bytes(image.dtype));
  // The columns of the crop that lie inside the image; the other columns are padding.
  const std::int64_t first = std::clamp<std::int64_t>(-draw.dx, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(width - draw.dx, first, width);
  for (std::int64_t i = 0; i < height; ++i) {
    // Row y needs row y + dy of the source. In this order that row is still unchanged when the
    // target is the source.
    const std::int64_t y = draw.dy >= 0 ? i : height - 1 - i;
    std::byte* row = target.data() + y * width * pixel_bytes;
    const std::int64_t from_y = y + draw.dy;
    if (from_y < 0 || from_y >= height) {
      std::memset(row, 0, static_cast<std::size_t>(width * pixel_bytes));
      continue;
    }
    const std::byte* from = source.data() + (from_y * width + first + draw.dx) * pixel_bytes;
    std::memmove(row + first * pixel_bytes, from,
                 static_cast<std::size_t>((last - first) * pixel_bytes));
    std::memset(row, 0, static_cast<std::size_t>(first * pixel_bytes));
    std::memset(row + last * pixel_bytes, 0,
                static_cast<std::size_t>((width - last) * pixel_bytes));
    if (!draw.flip) continue;
    for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * pixel_bytes, row + (left + 1) * pixel_bytes,
                       row + right * pixel_bytes);
    }
  }
}

}  // namespace

void apply_draw(const Draw& draw, const TensorSpec& image, std::span<const std::byte> source,
                std::span<std::byte> target) {
  check(source.size() == image.size_bytes() && target.size() == image.size_bytes(),
        "an image of another size");
  if (draw.kind == Augment::kCropFlip) {
    crop_and_flip(draw, image, source, target);
  } else if (source.data() != target.data()) {
    std::memcpy(target.data(), source.data(), source.size());
  }
}

}  // namespace syncopate
