#include "worker/input/draw.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/graph/graph.h"
#include "worker/input/image/orientation.h"
#include "worker/input/image/random_resized_crop.h"
#include "worker/input/image/resize.h"

namespace syncopate {

Draw make_draw(Augment kind, std::uint64_t seed, std::int64_t epoch,
               std::int64_t sample_index) noexcept {
  if (kind == Augment::kNone) return {};
  const RandomStream random(seed, hash_name(name(kind)) + static_cast<std::uint64_t>(epoch));
  const auto words = random.block(static_cast<std::uint64_t>(sample_index));
  if (kind == Augment::kRandomResizedCrop) {
    return {.kind = kind,
            .flip = (words[2] >> 31) != 0,
            .bits = std::uint64_t{words[0]} << 32 | words[1]};
  }
  const auto shift = [](std::uint32_t word) {
    return static_cast<int>((std::uint64_t{word} * (2 * kCropPadding + 1)) >> 32) - kCropPadding;
  };
  return {kind, shift(words[0]), shift(words[1]), (words[2] >> 31) != 0};
}

std::uint64_t make_key(std::uint64_t seed, std::int64_t epoch, std::int64_t sample_index) noexcept {
  const RandomStream random(seed, hash_name("dropout") + static_cast<std::uint64_t>(epoch));
  const auto words = random.block(static_cast<std::uint64_t>(sample_index));
  return std::uint64_t{words[0]} << 32 | words[1];
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

// Cuts out a part of an image of u8, stretches it to the whole image and mirrors it.
void resize_part(const Draw& draw, const TensorSpec& image, std::span<const std::byte> source,
                 std::span<std::byte> target) {
  const std::int64_t height = image.shape[0];
  const std::int64_t width = image.shape[1];
  const auto channels = static_cast<int>(image.shape[2]);
  const PixelRectangle part = random_resized_crop(draw.bits, width, height);
  std::vector<std::uint8_t> pixels(target.size());  // the target may be the source
  Resizer resizer({part.x, part.width}, {part.y, part.height}, width, height, channels, pixels);
  const auto* const rows = reinterpret_cast<const std::uint8_t*>(source.data());
  for (std::int64_t y = part.y; y < part.y + part.height; ++y) {
    resizer.add_row(rows + (y * width + part.x) * channels);
  }
  orient_pixels(pixels, width, height, channels, {.flip_columns = draw.flip},
                {reinterpret_cast<std::uint8_t*>(target.data()), target.size()});
}

}  // namespace

void check_augment(Augment kind, const TensorSpec& image) {
  if (kind == Augment::kNone) return;
  const bool is_image = image.shape.size() == 3;
  if (kind == Augment::kCropFlip && !is_image) {
    throw UsageError("crop-flip needs images [H, W, C]; this data set's samples are " +
                     to_string(image.shape));
  }
  const bool has_bytes =
      is_image && image.dtype == DType::kU8 && (image.shape[2] == 1 || image.shape[2] == 3);
  if (kind == Augment::kRandomResizedCrop && !has_bytes) {
    throw UsageError(
        "random-resized-crop needs images [H, W, C] of u8 with 1 or 3 channels; this "
        "data set's samples are " +
        std::string(name(image.dtype)) + " " + to_string(image.shape));
  }
}

void apply_draw(const Draw& draw, const TensorSpec& image, std::span<const std::byte> source,
                std::span<std::byte> target) {
  check(source.size() == image.size_bytes() && target.size() == image.size_bytes(),
        "an image of another size");
  if (draw.kind == Augment::kCropFlip) {
    crop_and_flip(draw, image, source, target);
  } else if (draw.kind == Augment::kRandomResizedCrop) {
    resize_part(draw, image, source, target);
  } else if (source.data() != target.data()) {
    std::memcpy(target.data(), source.data(), source.size());
  }
}

void apply_draw_to_labels(const Draw& draw, int height, int width, std::span<std::int32_t> labels) {
  if (draw.kind == Augment::kNone) return;
  check(draw.kind == Augment::kCropFlip, "a label map is cropped and mirrored");
  const std::vector<std::int32_t> source(labels.begin(), labels.end());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int from_y = y + draw.dy;
      const int from_x = (draw.flip ? width - 1 - x : x) + draw.dx;
      const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
      labels[static_cast<std::size_t>(y * width + x)] =
          inside ? source[static_cast<std::size_t>(from_y * width + from_x)] : kUncounted;
    }
  }
}

}  // namespace syncopate
