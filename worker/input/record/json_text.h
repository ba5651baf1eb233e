// Reads the JSON files that describe records, with errors that name the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace syncopate {

// The program that writes the files of --data tfds:, for messages.
inline constexpr std::string_view kTfdsWriter = "TensorFlow Datasets";

// Reads a JSON file and calls `read` with it. writer: what writes such files, for messages. Throws
// FileError naming the file: it cannot be read, is no JSON, or `read` looked for a key or a type of
// value that is not there; and what `read` throws besides.
void read_json(const std::filesystem::path& path, std::string_view writer,
               const std::function<void(const nlohmann::json&)>& read);

// Returns a number from 0 to `most`. Protobuf's JSON has 64-bit numbers as text. what: names the
// value in messages. Throws FileError for another number.
std::int64_t count_of(const nlohmann::json& value, std::int64_t most, std::string_view what);

}  // namespace syncopate
