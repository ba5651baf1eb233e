// The IDX files of MNIST. Source: yann.lecun.com/exdb/mnist, "file formats".
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace syncopate {

struct IdxImages {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> pixels;  // [count * rows * columns]
};

// Plain or packed by suffix. Throws FileError: cut short, wrong magic number, empty or absurd
// sizes, bytes left over.
IdxImages read_idx_images(const std::filesystem::path& path);

// The same, and a label that is not below num_classes.
std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& path, int num_classes);

}  // namespace syncopate
