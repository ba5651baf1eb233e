// Writes a label map as a PNG file with a palette: the value of a pixel is its class, and viewers
// show each class in a colour.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace syncopate {

// labels: [height * width], each below 256. Replaces the file atomically. Throws FileError.
void write_label_png(const std::filesystem::path& path, std::span<const std::uint8_t> labels,
                     std::int64_t width, std::int64_t height);

}  // namespace syncopate
