// Decodes a JPEG or PNG file into pixels of a given size. Only the part of the picture that is
// needed is decoded, at the smallest scale that suffices for the result. Then this part is resized,
// turned upright and mirrored.
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
  // Size of the result. The crop is stretched to this size (resize.h).
  std::int64_t width = 0;
  std::int64_t height = 0;
  // The number of channels of the result: 1 (grey) or 3 (red, green, blue). Colours are converted
  // to grey by ITU-R BT.601; an alpha channel is ignored.
  int channels = 3;
  // The rectangle to decode, in pixels of the shown picture; nullopt: the whole picture.
  std::optional<PixelRectangle> crop = std::nullopt;
  // True: the picture is turned as its EXIF orientation says. False: the shown picture is the
  // stored picture.
  bool apply_exif = false;
  // True: left and right are exchanged in the result.
  bool mirror = false;
  // True: JPEG files are decoded at 1/2, 1/4 or 1/8 of their size if the crop is then not smaller
  // than the result.
  bool reduce = true;
};

// Decodes `file` into pixels [height, width, channels]. header: the header that read_image_header()
// read from `file`. JPEG uses the accurate integer transform and smooth chroma upsampling. CMYK is
// converted as in TensorFlow, without a colour profile. Memory is bounded, because the rows of JPEG
// files and of PNG files without interlacing are decoded one after another. Any thread may call
// this. Throws FileError naming file, offset and reason, also if the data are cut short or have
// invalid codes.
void decode_image(std::span<const std::byte> file, std::string_view name, const ImageHeader& header,
                  const DecodeOptions& options, std::span<std::uint8_t> pixels);

}  // namespace syncopate
