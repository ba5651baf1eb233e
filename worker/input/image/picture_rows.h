// Decodes the rows of a JPEG or a PNG file that a resizer asks for. Called by decode_image().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "worker/input/image/image_header.h"
#include "worker/input/image/resize.h"

namespace syncopate {

// Returns the grey value of a colour. Source: ITU-R BT.601, as in JPEG files.
constexpr std::uint8_t grey_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue) noexcept {
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

// Decodes a JPEG file at 1 / reduction of the stored size and passes the rows to `resizer`.
// reduction: 1, 2, 4 or 8; the windows of the resizer have the same reduction. channels: 1 or 3.
// Throws FileError.
void decode_jpeg_rows(std::span<const std::byte> file, std::string_view name,
                      const ImageHeader& header, int channels, int reduction, Resizer& resizer);

// Decodes a PNG file and passes the rows to `resizer`. channels: 1 or 3. Throws FileError.
void decode_png_rows(std::span<const std::byte> file, std::string_view name,
                     const ImageHeader& header, int channels, Resizer& resizer);

}  // namespace syncopate
