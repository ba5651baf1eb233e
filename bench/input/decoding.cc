#include "bench/input/decoding.h"

// jpeglib.h needs FILE.
#include <jpeglib.h>
#include <cstdio>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "models/base/errors.h"
#include "worker/input/image/image_decoder.h"
#include "worker/input/image_folder.h"

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

std::vector<JpegFile> read_jpeg_files(const std::filesystem::path& folder, std::size_t most) {
  const ImageFolder pictures = find_images(folder).train;
  std::vector<JpegFile> files;
  const std::size_t step = std::max<std::size_t>(1, pictures.files.size() / most);
  for (std::size_t i = 0; i < pictures.files.size() && files.size() < most; i += step) {
    const std::filesystem::path path = pictures.root / pictures.files[i].name;
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
    if (read_image_header(bytes, path.string()).format != ImageFormat::kJpeg) continue;
    files.push_back({path.string(), {bytes.begin(), bytes.end()}});
  }
  if (files.empty()) {
    throw UsageError(folder.string() + " has no JPEG files; the benchmark decodes JPEG");
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
