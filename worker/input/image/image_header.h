// What the first bytes of a picture file say: format, size and orientation, without decoding.
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

// Larger pictures are refused before anything is allocated for them.
inline constexpr std::int64_t kMaxImagePixels = std::int64_t{1} << 27;
// A file is read as a whole before its header is looked at; no picture is larger.
inline constexpr std::int64_t kMaxImageBytes = std::int64_t{256} << 20;

struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  // Size as stored. An orientation that transposes exchanges them in the shown picture.
  std::int64_t width = 0;
  std::int64_t height = 0;
  // The value of the EXIF tag, 1 to 8. A PNG file has the tag in an eXIf chunk before the pixels.
  int exif_orientation = 1;
};

// Reads the header of a JPEG or PNG file. `file` is the whole file or its beginning, `name` is for
// messages. Throws FileError that names file, offset and reason: the file is of another format
// (which is named), is cut short, has no pixels or more than kMaxImagePixels, or more than 8 bits
// per JPEG sample.
ImageHeader read_image_header(std::span<const std::byte> file, std::string_view name);

// Returns what a file that starts with these bytes seems to be: "a GIF file", "HTML", "an empty
// file"; nothing for an unknown type.
std::optional<std::string> known_file_type(std::span<const std::byte> file);
// Returns the type, or the first bytes of a file of no known type, for a message.
std::string describe_file_type(std::span<const std::byte> file);

// Throws FileError with the one form that errors about pictures have: "NAME: REASON at byte N".
[[noreturn]] void throw_image_error(std::string_view name, std::uint64_t offset,
                                    std::string_view reason);

}  // namespace syncopate
