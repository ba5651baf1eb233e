// Writes PNG files: grey pictures, and label maps with a palette. The value of a label map's pixel
// is its class; viewers show each class in a colour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace syncopate {

// labels: [height * width], each below 256. Replaces the file atomically. Throws FileError.
void write_label_png(const std::filesystem::path& path, std::span<const std::uint8_t> labels,
                     std::int64_t width, std::int64_t height);

// Returns a PNG file of grey pixels, [height * width], 0 black. Throws InternalError.
std::vector<std::byte> encode_grey_png(std::span<const std::uint8_t> pixels, std::int64_t width,
                                       std::int64_t height);

}  // namespace syncopate
