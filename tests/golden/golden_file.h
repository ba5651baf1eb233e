// Reads the golden numbers that make_golden.py wrote (safetensors: header length, JSON header,
// bytes).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace syncopate {

struct GoldenFile {
  std::map<std::string, std::vector<double>> tensors;
  std::map<std::string, std::string> metadata;
};

// Throws FileError when it cannot be opened, nlohmann's exceptions when the header is damaged.
GoldenFile read_golden_file(const std::filesystem::path& path);

// What make_golden.py keeps of a tensor: at most `limit` elements at a fixed stride, from the first
// on.
std::vector<double> kept_elements(std::span<const float> values, std::size_t limit);

}  // namespace syncopate
