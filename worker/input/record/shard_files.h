// Finds the files of records: what is in a folder, which files a pattern of --data tfrecord: names,
// and which parts of a data set are missing, such as train-00002-of-00008.tfrecord. The errors tell
// a folder that is not there from one that cannot be read.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// Whether a file or a folder with this path exists. Throws FileError if this cannot be determined,
// for example because the user has no access to the folder above it.
bool is_there(const std::filesystem::path& path);

// Returns the names in a folder, sorted by their bytes; empty if the folder does not exist. Throws
// FileError if the folder cannot be read.
std::vector<std::string> names_in_folder(const std::filesystem::path& folder);

// Returns the files that match `pattern`, without duplicates, sorted by the bytes of their names.
// Throws UsageError if no file matches, or if shards of a set that match the pattern are missing.
// Shards that do not match a pattern such as a-0000[0-3]* may be missing. Throws FileError if a
// folder cannot be read.
std::vector<std::filesystem::path> files_of_pattern(const std::string& pattern);

// Throws UsageError, "--data NAME: FOLDER: 3 of 8 shards are there; the first that is missing is
// FILE; ADVICE", if the names of the files imply more files than there are. is_wanted: returns
// whether the file at a path should be among `files`; only such files are reported as missing.
// Ignores files without a number of shards in their name.
void require_all_shards(std::string_view data_name, std::span<const std::filesystem::path> files,
                        const std::function<bool(const std::string& path)>& is_wanted,
                        std::string_view advice);

// Logs a warning with the numbers that are missing among files with names such as 0.records,
// 1.records.
void warn_about_gaps(std::string_view data_name, std::span<const std::filesystem::path> files);

}  // namespace syncopate
