// Decodes the rows of a PNG file.
#include <spng.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/base/unique_handle.h"
#include "worker/input/image/picture_rows.h"

namespace syncopate {
namespace {

// Texts and colour profiles that a file carries beside its pixels.
constexpr std::size_t kMaxChunkBytes = std::size_t{16} << 20;

struct PngTraits {
  using Type = spng_ctx*;
  static Type none() noexcept { return nullptr; }
  static void close(Type context) noexcept { spng_ctx_free(context); }
};
using PngContext = UniqueHandle<PngTraits>;

// Gives libspng the file piece by piece, so that an error can name the offset.
struct PngInput {
  std::span<const std::byte> file;
  std::size_t offset = 0;

  static int read(spng_ctx*, void* user, void* out, std::size_t size) {
    auto& input = *static_cast<PngInput*>(user);
    if (size > input.file.size() - input.offset) return SPNG_IO_EOF;
    std::memcpy(out, input.file.data() + input.offset, size);
    input.offset += size;
    return 0;
  }
};

std::uint32_t big_endian_at(std::span<const std::byte> file, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = offset; i < offset + 4; ++i) {
    value = value << 8 | std::to_integer<std::uint32_t>(file[i]);
  }
  return value;
}

// Compares the checksum of every chunk that the pixels need. Others, such as texts, have a
// lower-case letter in front, and libspng leaves them out if they are damaged, as libpng does.
// libspng stops after the last pixel, before it has read the checksum of the data that made the
// last rows.
void check_chunks(std::span<const std::byte> file, std::string_view name) {
  constexpr std::size_t kSignatureBytes = 8;
  constexpr std::size_t kFrameBytes = 12;  // length, type and checksum
  std::size_t offset = kSignatureBytes;
  while (offset < file.size()) {
    const std::size_t left = file.size() - offset;
    if (left < kFrameBytes || big_endian_at(file, offset) > left - kFrameBytes) {
      throw_image_error(name, file.size(), "the file ends in a PNG chunk");
    }
    const std::uint32_t length = big_endian_at(file, offset);
    const auto* const type = reinterpret_cast<const Bytef*>(file.data() + offset + 4);
    const bool is_end = std::memcmp(type, "IEND", 4) == 0;  // behind all pixels
    const bool is_needed = (type[0] & 0x20U) == 0 && !is_end;
    if (is_needed && ::crc32(0, type, length + 4) != big_endian_at(file, offset + 8 + length)) {
      throw_image_error(name, offset, "wrong checksum of the PNG chunk");
    }
    offset += kFrameBytes + length;
    if (is_end) return;  // bytes behind the end do not matter
  }
}

}  // namespace

void decode_png_rows(std::span<const std::byte> file, std::string_view name,
                     const ImageHeader& header, int channels, Resizer& resizer) {
  check_chunks(file, name);
  PngInput input{file};
  const auto require = [&](int code) {
    if (code == SPNG_IO_EOF) throw_image_error(name, file.size(), "the file ends early");
    if (code != 0) {
      throw_image_error(name, input.offset,
                        std::string("damaged PNG data (") + spng_strerror(code) + ")");
    }
  };
  const PngContext png(spng_ctx_new(0));
  check(static_cast<bool>(png), "libspng gives a context");
  // The checksums of needed chunks were compared above.
  require(spng_set_crc_action(png.get(), SPNG_CRC_USE, SPNG_CRC_DISCARD));
  require(spng_set_chunk_limits(png.get(), kMaxChunkBytes, kMaxChunkBytes));
  require(spng_set_png_stream(png.get(), PngInput::read, &input));
  spng_ihdr ihdr = {};
  require(spng_get_ihdr(png.get(), &ihdr));
  check(ihdr.width == header.width && ihdr.height == header.height, "the header of this file");

  const std::size_t row_bytes = static_cast<std::size_t>(header.width) * 3;
  const auto use_row = [&](std::int64_t y, std::uint8_t* row) {
    if (y < resizer.first_row() || y > resizer.last_row()) return;
    if (channels == 1) {
      for (std::int64_t x = 0; x < header.width; ++x) {
        row[x] = grey_of(row[3 * x], row[3 * x + 1], row[3 * x + 2]);
      }
    }
    resizer.add_row(row + resizer.first_column() * channels);
  };

  std::vector<std::uint8_t> rows;
  if (ihdr.interlace_method != 0) {
    // The passes of an interlaced file come back to every row.
    rows.resize(row_bytes * header.height);
    require(spng_decode_image(png.get(), rows.data(), rows.size(), SPNG_FMT_RGB8, 0));
    for (std::int64_t y = 0; y < header.height; ++y) use_row(y, rows.data() + y * row_bytes);
    return;
  }
  rows.resize(2 * row_bytes);  // the resizer reads the row before the latest one too
  require(spng_decode_image(png.get(), nullptr, 0, SPNG_FMT_RGB8, SPNG_DECODE_PROGRESSIVE));
  for (std::int64_t y = 0; y <= resizer.last_row(); ++y) {
    std::uint8_t* const row = rows.data() + (y % 2) * row_bytes;
    const int code = spng_decode_row(png.get(), row, row_bytes);
    if (code != SPNG_EOI) require(code);
    use_row(y, row);
  }
}

}  // namespace syncopate
