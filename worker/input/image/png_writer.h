// Writes PNG files of grey pictures, and of label maps with a palette. A pixel of a label map has
// the number of its class; the palette gives each class a colour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace syncopate {

// Writes a label map. labels: [height * width], the class of each pixel. Replaces the file
// atomically. Throws FileError.
void write_label_png(const std::filesystem::path& path, std::span<const std::uint8_t> labels,
                     std::int64_t width, std::int64_t height);

// Returns the bytes of a PNG file of grey pixels [height * width], where 0 is black. Throws
// InternalError.
std::vector<std::byte> encode_grey_png(std::span<const std::uint8_t> pixels, std::int64_t width,
                                       std::int64_t height);

}  // namespace syncopate
