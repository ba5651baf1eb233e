#include "worker/input/image/image_decoder.h"

#include <vector>

#include "models/base/errors.h"
#include "worker/input/image/picture_rows.h"
#include "worker/input/image/resize.h"

namespace syncopate {
namespace {

// Returns the largest reduction of a JPEG picture that leaves the cut-out at least as large as the
// result. libjpeg-turbo has fast transforms for these reductions alone.
std::int64_t jpeg_reduction(const PixelRectangle& part, std::int64_t width, std::int64_t height) {
  for (const std::int64_t reduction : {8, 4, 2}) {
    if (part.width >= reduction * width && part.height >= reduction * height) return reduction;
  }
  return 1;
}

}  // namespace

void decode_image(std::span<const std::byte> file, std::string_view name, const ImageHeader& header,
                  const DecodeOptions& options, std::span<std::uint8_t> pixels) {
  const Orientation upright =
      options.apply_exif ? Orientation::from_exif(header.exif_orientation) : Orientation{};
  const bool transposed = upright.transposed;
  const PixelRectangle shown = {0, 0, transposed ? header.height : header.width,
                                transposed ? header.width : header.height};
  const PixelRectangle crop = options.crop.value_or(shown);
  check(crop.x >= 0 && crop.y >= 0 && crop.width > 0 && crop.height > 0 &&
            crop.x + crop.width <= shown.width && crop.y + crop.height <= shown.height,
        "a cut-out beyond the picture");
  const PixelRectangle part = to_stored(crop, upright, header.width, header.height);
  const std::int64_t width = transposed ? options.height : options.width;
  const std::int64_t height = transposed ? options.width : options.height;

  const Orientation orientation = options.mirror ? upright.mirrored() : upright;
  std::vector<std::uint8_t> stored;
  if (!orientation.is_identity()) stored.resize(pixels.size());
  const std::span<std::uint8_t> resized = orientation.is_identity() ? pixels : std::span(stored);

  const bool is_jpeg = header.format == ImageFormat::kJpeg;
  const std::int64_t reduction =
      is_jpeg && options.reduce ? jpeg_reduction(part, width, height) : 1;
  Resizer resizer({part.x, part.width, reduction}, {part.y, part.height, reduction}, width, height,
                  options.channels, resized);
  if (is_jpeg) {
    decode_jpeg_rows(file, name, header, options.channels, static_cast<int>(reduction), resizer);
  } else {
    decode_png_rows(file, name, header, options.channels, resizer);
  }
  if (!orientation.is_identity()) {
    orient_pixels(stored, width, height, options.channels, orientation, pixels);
  }
}

}  // namespace syncopate
