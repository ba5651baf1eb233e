// Decodes the rows of a JPEG file that a resizer asks for. Called by decode_image.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "worker/input/image/image_header.h"
#include "worker/input/image/resize.h"

namespace syncopate {

// Decodes a JPEG file at 1 / reduction of the stored size and passes the rows to `resizer`.
// reduction: 1, 2, 4 or 8; the windows of the resizer have the same reduction. channels: 1 or 3.
// Throws FileError.
void decode_jpeg_rows(std::span<const std::byte> file, std::string_view name,
                      const ImageHeader& header, int channels, int reduction, Resizer& resizer);

}  // namespace syncopate
