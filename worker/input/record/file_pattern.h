// Finds the files that a pattern of --data tfrecord: names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate {

// Returns the files that match, each once, in the byte order of their names. Throws UsageError:
// none, or some shards of a set are missing; a pattern that leaves shards out, such as
// a-0000[0-3]*, asks for the others only. Throws FileError if a folder cannot be read.
std::vector<std::filesystem::path> files_of_pattern(const std::string& pattern);

}  // namespace syncopate
