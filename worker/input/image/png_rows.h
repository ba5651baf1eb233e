// Decodes the rows of a PNG file that a resizer asks for. Called by decode_image.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "worker/input/image/image_header.h"
#include "worker/input/image/resize.h"

namespace syncopate {

// Decodes a PNG file and passes the rows to `resizer`. channels: 1 or 3. Throws FileError.
void decode_png_rows(std::span<const std::byte> file, std::string_view name,
                     const ImageHeader& header, int channels, Resizer& resizer);

}  // namespace syncopate
