// Looks into folders of records, with errors that tell a folder that is not there from one that
// cannot be read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate {

// Whether there is a file or a folder of this name. Throws FileError if that cannot be found out,
// such as in a folder that this user may not enter.
bool is_there(const std::filesystem::path& path);

// Returns the names in a folder in their byte order; none if there is no such folder. Throws
// FileError if the folder cannot be read.
std::vector<std::string> names_in_folder(const std::filesystem::path& folder);

}  // namespace syncopate
