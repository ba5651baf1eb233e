// Decodes a JPEG or PNG file into pixels of a given size: the part that is needed, at the smallest
// scale that suffices, resized, turned upright and mirrored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "worker/input/image/image_header.h"
#include "worker/input/image/orientation.h"

namespace syncopate {

struct DecodeOptions {
  // Size of the result. The rectangle that is cut out is stretched to it (resize.h).
  std::int64_t width = 0;
  std::int64_t height = 0;
  // 1 (grey) or 3 (red, green, blue). Colours become grey by ITU-R BT.601; opacity is not applied.
  int channels = 3;
  // What is cut out, in pixels of the shown picture; everything if absent.
  std::optional<PixelRectangle> crop = std::nullopt;
  // Turns the picture as its EXIF orientation says. Without it the shown picture is the stored one.
  bool apply_exif = false;
  // Exchanges left and right in the result.
  bool mirror = false;
  // Lets JPEG be decoded at 1/2, 1/4 or 1/8 of its size when that is not smaller than the result.
  bool reduce = true;
};

// Decodes `file`, which `header` was read from, into pixels [height, width, channels]. JPEG uses
// the accurate integer transform and smooth chroma upsampling. A picture is refused, not filled up
// in grey, if its data are cut short or its codes are wrong. CMYK is converted as TensorFlow does,
// without a colour profile. Bounded memory: the rows of a JPEG file and of a PNG file that is not
// interlaced pass through one after the other. Any thread. Throws FileError that names file, offset
// and reason.
void decode_image(std::span<const std::byte> file, std::string_view name, const ImageHeader& header,
                  const DecodeOptions& options, std::span<std::uint8_t> pixels);

}  // namespace syncopate
