// Reads format, size and orientation of a picture from the first bytes of its file, without
// decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "worker/input/image/orientation.h"

namespace syncopate {

enum class ImageFormat : std::uint8_t { kJpeg, kPng };

// The most pixels of a picture. Larger pictures are refused before memory is allocated for them.
inline constexpr std::int64_t kMaxImagePixels = std::int64_t{1} << 27;
// The most bytes of a picture's file. The limit is needed because a file is read as a whole before
// its header is examined.
inline constexpr std::int64_t kMaxImageBytes = std::int64_t{256} << 20;

struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  // Size as stored. If exif_orientation transposes the picture, width and height are exchanged in
  // the shown picture.
  std::int64_t width = 0;
  std::int64_t height = 0;
  // The value of the EXIF orientation tag, 1 to 8. In a PNG file, the tag is read only from an eXIf
  // chunk before the pixels.
  int exif_orientation = 1;
};

// Reads the header of a JPEG or PNG file. file: the whole file or its beginning. name: the name of
// the file, for messages. Throws FileError naming file, offset and reason if the file has another
// format, which the error names, or is cut short. Also throws FileError if the picture has no
// pixels or more than kMaxImagePixels, or if a JPEG file has more than 8 bits per sample.
ImageHeader read_image_header(std::span<const std::byte> file, std::string_view name);

// Returns the type of a file that starts with these bytes, such as "a GIF file", "HTML" or "an
// empty file"; nullopt for an unknown type.
std::optional<std::string> known_file_type(std::span<const std::byte> file);
// Returns the result of known_file_type(), or the first bytes if the type is unknown, for a
// message.
std::string describe_file_type(std::span<const std::byte> file);

// Throws FileError with a message in the form of all errors about pictures, "NAME: REASON at byte
// N".
[[noreturn]] void throw_image_error(std::string_view name, std::uint64_t offset,
                                    std::string_view reason);

}  // namespace syncopate
