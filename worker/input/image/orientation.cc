#include "worker/input/image/orientation.h"

#include <algorithm>
#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// Reads unsigned integers of a TIFF block in its byte order; 0 beyond the end.
class TiffReader {
 public:
  TiffReader(std::span<const std::byte> bytes, bool big_endian)
      : bytes_(bytes), big_endian_(big_endian) {}

  std::uint32_t read(std::uint64_t offset, int num_bytes) const noexcept {
    if (offset + num_bytes > bytes_.size()) return 0;
    std::uint32_t value = 0;
    for (int i = 0; i < num_bytes; ++i) {
      const int place = big_endian_ ? num_bytes - 1 - i : i;
      value |= std::to_integer<std::uint32_t>(bytes_[offset + i]) << (8 * place);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_endian_;
};

}  // namespace

Orientation Orientation::from_exif(int exif) noexcept {
  constexpr std::array<Orientation, 8> kOrientations = {{
      {false, false, false},
      {false, true, false},
      {false, true, true},
      {false, false, true},
      {true, false, false},
      {true, false, true},
      {true, true, true},
      {true, true, false},
  }};
  return exif >= 1 && exif <= 8 ? kOrientations[exif - 1] : Orientation{};
}

Orientation Orientation::mirrored() const noexcept {
  Orientation result = *this;
  // Along the shown x axis run the stored rows of a transposed picture.
  bool& flip = transposed ? result.flip_rows : result.flip_columns;
  flip = !flip;
  return result;
}

int exif_orientation(std::span<const std::byte> tiff) noexcept {
  constexpr std::uint32_t kOrientationTag = 0x0112;
  constexpr std::uint32_t kShort = 3;
  constexpr int kEntryBytes = 12;
  const std::uint32_t order = TiffReader(tiff, true).read(0, 2);
  if (order != 0x4949 && order != 0x4D4D) return 1;
  const TiffReader reader(tiff, order == 0x4D4D);
  if (reader.read(2, 2) != 42) return 1;
  const std::uint64_t directory = reader.read(4, 4);
  const std::uint32_t num_entries = reader.read(directory, 2);
  for (std::uint32_t i = 0; i < num_entries; ++i) {
    const std::uint64_t entry = directory + 2 + std::uint64_t{i} * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 1;
    if (reader.read(entry, 2) != kOrientationTag) continue;
    const auto value = static_cast<int>(reader.read(entry + 8, 2));
    return reader.read(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

PixelRectangle to_stored(const PixelRectangle& shown, const Orientation& orientation,
                         std::int64_t stored_width, std::int64_t stored_height) noexcept {
  PixelRectangle stored = shown;
  if (orientation.transposed) {
    std::swap(stored.x, stored.y);
    std::swap(stored.width, stored.height);
  }
  if (orientation.flip_columns) stored.x = stored_width - stored.x - stored.width;
  if (orientation.flip_rows) stored.y = stored_height - stored.y - stored.height;
  return stored;
}

void orient_pixels(std::span<const std::uint8_t> stored, std::int64_t stored_width,
                   std::int64_t stored_height, int channels, const Orientation& orientation,
                   std::span<std::uint8_t> shown) {
  check(stored.size() == shown.size() &&
            stored.size() == static_cast<std::size_t>(stored_width * stored_height * channels),
        "a picture of another size than its buffer");
  const std::int64_t row_bytes = stored_width * channels;
  // Bytes between the stored pixels of two neighbours along the shown x and y axes.
  const std::int64_t column_step = orientation.flip_columns ? -channels : channels;
  const std::int64_t row_step = orientation.flip_rows ? -row_bytes : row_bytes;
  const std::int64_t x_step = orientation.transposed ? row_step : column_step;
  const std::int64_t y_step = orientation.transposed ? column_step : row_step;
  const std::int64_t width = orientation.transposed ? stored_height : stored_width;
  const std::int64_t height = orientation.transposed ? stored_width : stored_height;
  const std::int64_t origin = (orientation.flip_columns ? row_bytes - channels : 0) +
                              (orientation.flip_rows ? (stored_height - 1) * row_bytes : 0);
  std::uint8_t* out = shown.data();
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint8_t* in = stored.data() + origin + y * y_step;
    for (std::int64_t x = 0; x < width; ++x, in += x_step) out = std::copy_n(in, channels, out);
  }
}

}  // namespace syncopate
