// Reads features.json, in which TensorFlow Datasets describes the features of a record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace syncopate {

// A feature. The name of a feature in a nested dictionary is "outer/inner".
struct TfdsFeature {
  std::string name;
  std::string type;              // "Image", "ClassLabel"
  std::int64_t num_classes = 0;  // 0: unknown, or the type is not ClassLabel
};

// Returns the features in a file of any version of TensorFlow Datasets. Throws FileError naming the
// file.
std::vector<TfdsFeature> read_tfds_features(const std::filesystem::path& path);

}  // namespace syncopate
