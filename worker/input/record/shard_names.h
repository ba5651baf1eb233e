// Finds missing parts (shards) of a data set by the names of its files, such as
// train-00002-of-00008.tfrecord.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace syncopate {

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
