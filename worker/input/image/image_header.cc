#include "worker/input/image/image_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "models/base/errors.h"
#include "models/base/lower_case.h"

namespace syncopate {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n"sv;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads big-endian integers of a picture file; a read beyond the end is an error.
class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, std::string_view name) : file_(file), name_(name) {}

  std::uint64_t offset() const noexcept { return offset_; }
  std::uint32_t read(int num_bytes) {
    require(num_bytes);
    std::uint32_t value = 0;
    for (int i = 0; i < num_bytes; ++i) {
      value = value << 8 | std::to_integer<std::uint32_t>(file_[offset_++]);
    }
    return value;
  }
  std::span<const std::byte> read_bytes(std::uint64_t num_bytes) {
    require(num_bytes);
    offset_ += num_bytes;
    return file_.subspan(offset_ - num_bytes, num_bytes);
  }
  [[noreturn]] void fail(std::string_view reason) const {
    throw_image_error(name_, offset_, reason);
  }

 private:
  void require(std::uint64_t num_bytes) const {
    if (num_bytes > file_.size() - offset_) {
      throw_image_error(name_, file_.size(), "the file ends in its header");
    }
  }

  std::span<const std::byte> file_;
  std::string_view name_;
  std::uint64_t offset_ = 0;
};

void check_size(const HeaderReader& reader, std::int64_t width, std::int64_t height) {
  if (width == 0 || height == 0) reader.fail("the header promises a picture without pixels");
  if (width > kMaxImagePixels / height) {
    reader.fail(
        fmt::format("the header promises {} x {} pixels, more than the {} million that "
                    "are decoded",
                    width, height, kMaxImagePixels / 1'000'000));
  }
}

// Source: ITU-T T.81, annex B.
ImageHeader read_jpeg_header(HeaderReader reader) {
  ImageHeader header{.format = ImageFormat::kJpeg};
  reader.read(2);  // start of image
  for (;;) {
    // As libjpeg, over bytes between segments, which many cameras write.
    while (reader.read(1) != 0xFF) {
    }
    std::uint32_t marker = reader.read(1);
    while (marker == 0xFF) marker = reader.read(1);  // fill bytes
    if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7))
      continue;  // markers without a length
    if (marker == 0xD9 || marker == 0xDA) reader.fail("JPEG pixels without a size before them");
    const std::uint32_t length = reader.read(2);
    if (length < 2) reader.fail("a JPEG segment of less than its own length");
    const bool is_frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame) {
      const std::uint32_t bits = reader.read(1);
      if (bits != 8) reader.fail(fmt::format("{} bits per JPEG sample; 8 are supported", bits));
      header.height = reader.read(2);
      header.width = reader.read(2);
      check_size(reader, header.width, header.height);
      return header;
    }
    const auto segment = reader.read_bytes(length - 2);
    constexpr std::string_view kExif = "Exif\0\0"sv;
    if (marker == 0xE1 && as_text(segment).starts_with(kExif)) {
      header.exif_orientation = exif_orientation(segment.subspan(kExif.size()));
    }
  }
}

// Source: PNG specification (ISO/IEC 15948), sections 5 and 11.
ImageHeader read_png_header(HeaderReader reader) {
  ImageHeader header{.format = ImageFormat::kPng};
  reader.read_bytes(kPngSignature.size());
  const std::uint32_t header_length = reader.read(4);
  if (as_text(reader.read_bytes(4)) != "IHDR" || header_length != 13) {
    reader.fail("expected the chunk IHDR of a PNG file");
  }
  header.width = reader.read(4);
  header.height = reader.read(4);
  check_size(reader, header.width, header.height);
  reader.read_bytes(5 + 4);  // depth, colour type, methods; checksum
  for (;;) {
    const std::uint32_t length = reader.read(4);
    const std::string_view type = as_text(reader.read_bytes(4));
    if (type == "IDAT" || type == "IEND") return header;
    const auto chunk = reader.read_bytes(length);
    if (type == "eXIf") header.exif_orientation = exif_orientation(chunk);
    reader.read(4);  // checksum
  }
}

}  // namespace

void throw_image_error(std::string_view name, std::uint64_t offset, std::string_view reason) {
  throw FileError(fmt::format("{}: {} at byte {}", name, reason, offset));
}

std::optional<std::string> known_file_type(std::span<const std::byte> file) {
  struct Magic {
    std::size_t offset;
    std::string_view bytes;
    std::string_view type;
  };
  constexpr std::array<Magic, 12> kTypes = {{
      {0, "\xff\xd8\xff"sv, "a JPEG file"},
      {0, kPngSignature, "a PNG file"},
      {0, "GIF8"sv, "a GIF file"},
      {8, "WEBP"sv, "a WebP file"},
      {0, "BM"sv, "a BMP file"},
      {0, "II*\0"sv, "a TIFF file"},
      {0, "MM\0*"sv, "a TIFF file"},
      {4, "ftypavif"sv, "an AVIF file"},
      {4, "ftyp"sv, "an HEIF file or a video"},
      {0, "%PDF"sv, "a PDF file"},
      {0, "PK\3\4"sv, "a ZIP archive"},
      {0, "version https://git-lfs"sv, "a pointer of Git LFS"},
  }};
  if (file.empty()) return "an empty file";
  const std::string_view text = as_text(file.first(std::min<std::size_t>(file.size(), 512)));
  for (const Magic& magic : kTypes) {
    if (text.size() > magic.offset && text.substr(magic.offset).starts_with(magic.bytes)) {
      return std::string(magic.type);
    }
  }
  const std::string lower = lower_case(text);
  const auto begin = lower.find_first_not_of(" \t\r\n");
  const std::string_view start =
      begin == std::string::npos ? ""sv : std::string_view(lower).substr(begin);
  if (start.starts_with("<!doctype html") || start.starts_with("<html")) return "HTML";
  if (start.starts_with("<?xml") || start.starts_with("<svg")) return "XML";
  return std::nullopt;
}

std::string describe_file_type(std::span<const std::byte> file) {
  if (auto type = known_file_type(file)) return *std::move(type);
  std::string bytes;
  for (const unsigned char byte : as_text(file).substr(0, 8)) bytes += fmt::format(" {:02x}", byte);
  return "a file that starts with the bytes" + bytes;
}

ImageHeader read_image_header(std::span<const std::byte> file, std::string_view name) {
  const HeaderReader reader(file, name);
  const std::string_view text = as_text(file);
  if (text.starts_with("\xff\xd8\xff"sv)) return read_jpeg_header(reader);
  if (text.starts_with(kPngSignature)) return read_png_header(reader);
  throw_image_error(name, 0, "expected a JPEG or PNG file, found " + describe_file_type(file));
}

}  // namespace syncopate
