// The entry point for libFuzzer: decodes any bytes as a picture, whole and in part. tests/README.md
// says how to run it.
#include <span>
#include <vector>

#include "models/base/errors.h"
#include "worker/input/image/image_decoder.h"

// libFuzzer prescribes the name and the types of this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);   // NOLINT
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace syncopate;                                                         // NOLINT
  const auto file = std::as_bytes(std::span(data, size));
  std::vector<std::uint8_t> pixels(24 * 20 * 3);
  try {
    const ImageHeader header = read_image_header(file, "x");
    if (header.width * header.height > 1 << 16) return 0;  // more of this would be slow, no more
    decode_image(file, "x", header, {.width = 24, .height = 20, .apply_exif = true}, pixels);
    DecodeOptions part{.width = 20, .height = 24, .mirror = true};
    part.crop = {header.width / 3, header.height / 4, (header.width + 1) / 2,
                 (header.height + 2) / 3};
    decode_image(file, "x", header, part, pixels);
  } catch (const FileError&) {
  }
  return 0;
}
