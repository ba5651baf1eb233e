#include "tests/worker/input/image/encoded_samples.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

// After cstdio, which it needs.
#include <jpeglib.h>
#include <spng.h>

namespace syncopate {
namespace {

std::vector<std::uint8_t> exif_block(int orientation, bool big_endian) {
  const auto value = static_cast<std::uint8_t>(orientation);
  if (big_endian) {
    return {'M', 'M', 0, 42, 0, 0, 0,     8, 0, 1, 1, 0x12, 0,
            3,   0,   0, 0,  1, 0, value, 0, 0, 0, 0, 0,    0};
  }
  return {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, value, 0, 0, 0, 0, 0, 0, 0};
}

void require(int spng_code) {
  if (spng_code != 0) throw std::runtime_error(spng_strerror(spng_code));
}

}  // namespace

Picture make_picture(std::int64_t width, std::int64_t height, int channels, unsigned seed) {
  Picture picture{width, height, channels, {}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const bool block = ((x / 5 + y / 7 + seed) % 3) == 0;
        picture.pixels.push_back(static_cast<std::uint8_t>(
            (x * (3 + c) + y * 5 + c * 60 + seed * 17 + (block ? 90 : 0)) % 256));
      }
    }
  }
  return picture;
}

FileBytes make_jpeg(const Picture& picture, const JpegForm& form) {
  jpeg_compress_struct compress = {};
  jpeg_error_mgr errors = {};
  compress.err = jpeg_std_error(&errors);
  jpeg_create_compress(&compress);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&compress, &memory, &size);
  compress.image_width = static_cast<JDIMENSION>(picture.width);
  compress.image_height = static_cast<JDIMENSION>(picture.height);
  compress.input_components = picture.channels;
  compress.in_color_space = picture.channels == 1   ? JCS_GRAYSCALE
                            : picture.channels == 3 ? JCS_RGB
                                                    : JCS_CMYK;
  jpeg_set_defaults(&compress);
  jpeg_set_quality(&compress, form.quality, TRUE);
  if (picture.channels == 3) {
    compress.comp_info[0].h_samp_factor = form.horizontal_sampling;
    compress.comp_info[0].v_samp_factor = form.vertical_sampling;
  }
  compress.restart_interval = form.restart_interval;
  std::vector<jpeg_scan_info> scans;
  if (form.progressive && form.num_scans > 0) {
    // A grey picture whose coefficients come one by one, again and again one bit finer.
    scans.push_back({1, {0}, 0, 0, 0, 0});
    for (int i = 1; i < form.num_scans; ++i) {
      const int coefficient = 1 + (i - 1) % 63;
      const int bit = 10 - (i - 1) / 63;
      scans.push_back({1, {0}, coefficient, coefficient, bit == 10 ? 0 : bit + 1, bit});
    }
    compress.scan_info = scans.data();
    compress.num_scans = form.num_scans;
  } else if (form.progressive) {
    jpeg_simple_progression(&compress);
  }
  jpeg_start_compress(&compress, TRUE);
  if (form.exif_orientation != 0) {
    std::vector<std::uint8_t> segment = {'E', 'x', 'i', 'f', 0, 0};
    const auto block = exif_block(form.exif_orientation, form.big_endian_exif);
    segment.insert(segment.end(), block.begin(), block.end());
    jpeg_write_marker(&compress, JPEG_APP0 + 1, segment.data(),
                      static_cast<unsigned>(segment.size()));
  }
  std::vector<std::uint8_t> row(picture.width * picture.channels);
  for (std::int64_t y = 0; y < picture.height; ++y) {
    std::memcpy(row.data(), picture.pixels.data() + y * row.size(), row.size());
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&compress, &pointer, 1);
  }
  jpeg_finish_compress(&compress);
  const auto* const begin = reinterpret_cast<const std::byte*>(memory);
  FileBytes file(begin, begin + size);
  jpeg_destroy_compress(&compress);
  std::free(memory);
  return file;
}

FileBytes make_png(const Picture& picture, const PngForm& form) {
  spng_ctx* const png = spng_ctx_new(SPNG_CTX_ENCODER);
  require(spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1));
  spng_ihdr header = {};
  header.width = static_cast<std::uint32_t>(picture.width);
  header.height = static_cast<std::uint32_t>(picture.height);
  header.bit_depth = static_cast<std::uint8_t>(form.bit_depth);
  constexpr int kColorTypes[] = {SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                 SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
  header.color_type = static_cast<std::uint8_t>(form.palette ? SPNG_COLOR_TYPE_INDEXED
                                                             : kColorTypes[picture.channels - 1]);
  header.interlace_method = form.interlaced ? 1 : 0;
  require(spng_set_ihdr(png, &header));
  if (form.palette) {
    spng_plte palette = {};
    palette.n_entries = 256;
    for (int i = 0; i < 256; ++i) {
      const auto value = static_cast<std::uint8_t>(i);
      palette.entries[i] = {value, value, value, 0};
    }
    require(spng_set_plte(png, &palette));
  }
  std::vector<std::uint8_t> block = exif_block(form.exif_orientation, false);
  if (form.exif_orientation != 0) {
    spng_exif exif = {block.size(), reinterpret_cast<char*>(block.data())};
    require(spng_set_exif(png, &exif));
  }
  std::vector<std::uint8_t> samples = picture.pixels;
  if (form.bit_depth == 16) {
    samples.clear();
    for (const std::uint8_t value : picture.pixels) {
      samples.push_back(77);  // the low byte, on a little-endian machine
      samples.push_back(value);
    }
  }
  require(
      spng_encode_image(png, samples.data(), samples.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE));
  std::size_t size = 0;
  int code = 0;
  void* const memory = spng_get_png_buffer(png, &size, &code);
  require(code);
  const auto* const begin = static_cast<const std::byte*>(memory);
  FileBytes file(begin, begin + size);
  std::free(memory);
  spng_ctx_free(png);
  return file;
}

}  // namespace syncopate
