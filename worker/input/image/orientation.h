// The orientation of a picture, which says how its stored rows and columns are turned for display.
// Source: EXIF 2.32 (CIPA DC-008), tag 0x0112 "Orientation".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syncopate {

// A rectangle of a picture, in pixels.
struct PixelRectangle {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend bool operator==(const PixelRectangle&, const PixelRectangle&) = default;
};

// An orientation maps the shown pixel (x, y) to a stored pixel (column, row) in two steps. (1)
// (column, row) is (x, y), or (y, x) if transposed. (2) The column is counted from the right if
// flip_columns, and the row from the bottom if flip_rows.
struct Orientation {
  bool transposed = false;
  bool flip_columns = false;
  bool flip_rows = false;

  // Returns the orientation for a value of the EXIF orientation tag, from 1 to 8. Other values are
  // treated as 1.
  static Orientation from_exif(int exif) noexcept;

  // Returns this orientation with left and right of the shown picture exchanged.
  Orientation mirrored() const noexcept;
  bool is_identity() const noexcept { return !transposed && !flip_columns && !flip_rows; }
  friend bool operator==(const Orientation&, const Orientation&) = default;
};

// Returns the value of the orientation tag in an EXIF block, which starts with a TIFF header ("II*"
// or "MM*"). Returns 1 when the block has no such tag or is damaged.
int exif_orientation(std::span<const std::byte> tiff) noexcept;

// Converts a rectangle of the shown picture to the rectangle of the stored picture with the same
// pixels. The stored picture has stored_width x stored_height pixels.
PixelRectangle to_stored(const PixelRectangle& shown, const Orientation& orientation,
                         std::int64_t stored_width, std::int64_t stored_height) noexcept;

// Copies stored pixels [stored_height, stored_width, channels] to `shown` in the order of the shown
// picture. Both spans have the same size.
void orient_pixels(std::span<const std::uint8_t> stored, std::int64_t stored_width,
                   std::int64_t stored_height, int channels, const Orientation& orientation,
                   std::span<std::uint8_t> shown);

}  // namespace syncopate
