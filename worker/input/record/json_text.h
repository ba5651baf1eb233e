// Reads JSON files that describe records. Errors name the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// The program that writes the files of --data tfds:, for messages.
inline constexpr std::string_view kTfdsWriter = "TensorFlow Datasets";

// Parses a JSON file and calls `read` with its content. writer: the program that writes such files,
// for messages. Throws FileError naming the file if the file cannot be read, is not JSON, or does
// not have a key or a type of value that `read` looks for. Also throws what `read` throws.
void read_json(const std::filesystem::path& path, std::string_view writer,
               const std::function<void(const nlohmann::json&)>& read);

// Converts a JSON value to a number from 0 to `most`. The value may be text, because Protobuf
// writes 64-bit numbers as text. what: the name of the value in messages. Throws FileError for any
// other value.
std::int64_t count_of(const nlohmann::json& value, std::int64_t most, std::string_view what);

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
