// Lists folders of records. A missing folder is no error; a folder that cannot be read is an error.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate {

// Whether a file or a folder with this path exists. Throws FileError if this cannot be determined,
// for example because the user has no access to the folder above it.
bool is_there(const std::filesystem::path& path);

// Returns the names in a folder, sorted by their bytes; empty if the folder does not exist. Throws
// FileError if the folder cannot be read.
std::vector<std::string> names_in_folder(const std::filesystem::path& folder);

}  // namespace syncopate
