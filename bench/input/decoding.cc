#include "bench/input/decoding.h"

// jpeglib.h needs FILE.
#include <jpeglib.h>
#include <cstdio>

#include <algorithm>
#include <optional>

#include "models/base/errors.h"
#include "worker/input/image/image_decoder.h"

namespace syncopate::bench {
namespace {

// Decodes every file at a size that depends on its header, with reduced scale allowed or not.
template <typename OptionsOf>
double decode(const std::vector<JpegFile>& files, OptionsOf options_of) {
  std::vector<std::uint8_t> pixels;
  const auto start = SteadyClock::now();
  for (const JpegFile& file : files) {
    const ImageHeader header = read_image_header(file.bytes, file.name);
    const DecodeOptions options = options_of(header);
    pixels.resize(static_cast<std::size_t>(options.width * options.height * options.channels));
    decode_image(file.bytes, file.name, header, options, pixels);
  }
  return seconds_since(start);
}

}  // namespace

std::vector<JpegFile> read_jpeg_files(const Dataset& pictures, std::size_t most) {
  std::vector<JpegFile> files;
  const auto step = std::max<std::int64_t>(1, pictures.size() / static_cast<std::int64_t>(most));
  for (std::int64_t i = 0; i < pictures.size() && files.size() < most; i += step) {
    const std::optional<StoredPicture> picture = pictures.stored_picture(i);
    if (!picture || read_image_header(picture->bytes, picture->name).format != ImageFormat::kJpeg) {
      continue;
    }
    files.push_back({picture->name, {picture->bytes.begin(), picture->bytes.end()}});
  }
  if (files.empty()) {
    throw UsageError("--data has no JPEG pictures, and the benchmark decodes JPEG; give others");
  }
  return files;
}

double decode_with_libjpeg(const std::vector<JpegFile>& files) {
  std::vector<std::uint8_t> pixels;
  const auto start = SteadyClock::now();
  for (const JpegFile& file : files) {
    jpeg_decompress_struct decoder = {};
    jpeg_error_mgr errors = {};
    decoder.err = jpeg_std_error(&errors);  // ends the process on a damaged file
    jpeg_create_decompress(&decoder);
    jpeg_mem_src(&decoder, reinterpret_cast<const unsigned char*>(file.bytes.data()),
                 file.bytes.size());
    jpeg_read_header(&decoder, TRUE);
    decoder.out_color_space = JCS_RGB;
    jpeg_start_decompress(&decoder);
    const std::size_t row_bytes = std::size_t{decoder.output_width} * 3;
    pixels.resize(row_bytes * decoder.output_height);
    while (decoder.output_scanline < decoder.output_height) {
      JSAMPROW row = pixels.data() + row_bytes * decoder.output_scanline;
      jpeg_read_scanlines(&decoder, &row, 1);
    }
    jpeg_finish_decompress(&decoder);
    jpeg_destroy_decompress(&decoder);
  }
  return seconds_since(start);
}

double decode_only(const std::vector<JpegFile>& files) {
  return decode(files, [](const ImageHeader& header) {
    return DecodeOptions{.width = header.width, .height = header.height, .reduce = false};
  });
}

double decode_and_resize(const std::vector<JpegFile>& files, std::int64_t height,
                         std::int64_t width) {
  return decode(
      files, [&](const ImageHeader&) { return DecodeOptions{.width = width, .height = height}; });
}

}  // namespace syncopate::bench
