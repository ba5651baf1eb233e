// Finds the files that match the pattern in --data tfrecord:PATTERN.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate {

// Returns the files that match `pattern`, without duplicates, sorted by the bytes of their names.
// Throws UsageError if no file matches, or if shards of a set that match the pattern are missing.
// Shards that do not match a pattern such as a-0000[0-3]* may be missing. Throws FileError if a
// folder cannot be read.
std::vector<std::filesystem::path> files_of_pattern(const std::string& pattern);

}  // namespace syncopate
