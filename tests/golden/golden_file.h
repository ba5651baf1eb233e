// Reads the files that make_golden.py writes. The format is safetensors: header length, JSON
// header, bytes.
#pragma once

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

// Opens a golden file. Throws FileError when the file cannot be opened, and an exception of
// nlohmann::json when its header is damaged.
GoldenFile read_golden_file(const std::filesystem::path& path);

// Returns the indices of the elements of a tensor that make_golden.py stores: at most `limit`, at a
// fixed stride from the first on.
std::vector<double> kept_elements(std::span<const float> values, std::size_t limit);

}  // namespace syncopate
