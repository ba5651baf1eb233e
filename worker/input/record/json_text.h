// Reads the JSON files that describe records, with errors that name the file.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace syncopate {

// Reads a JSON file and calls `read` with it. writer: what writes such files, for messages. Throws
// FileError naming the file: it cannot be read, is no JSON, or `read` looked for a key or a type of
// value that is not there; and what `read` throws besides.
void read_json(const std::filesystem::path& path, std::string_view writer,
               const std::function<void(const nlohmann::json&)>& read);

}  // namespace syncopate
