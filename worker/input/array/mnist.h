// Reads the IDX files of MNIST. Source: yann.lecun.com/exdb/mnist, "file formats".
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace syncopate {

struct IdxImages {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> pixels;  // grey values, [count * rows * columns]
};

// Reads an image file, which may be packed (.gz, .zst). Throws FileError if the file is cut short,
// has a wrong magic number, is empty or too large, or has bytes after the last image.
IdxImages read_idx_images(const std::filesystem::path& path);

// Reads a label file. Throws FileError as read_idx_images() does, and for labels above num_classes
// - 1.
std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& path, int num_classes);

}  // namespace syncopate
