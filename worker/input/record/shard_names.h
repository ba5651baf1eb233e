// Names of files that are parts of one data set, such as train-00002-of-00008.tfrecord: which parts
// are missing.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace syncopate {

// Throws UsageError, "--data NAME: FOLDER: 3 of 8 shards are there; the first that is missing is
// FILE; ADVICE", if the names of the files say that there are more. is_wanted: whether a missing
// file, given by its path, would have been among the files. Files without such names are left out.
void require_all_shards(std::string_view data_name, std::span<const std::filesystem::path> files,
                        const std::function<bool(const std::string& path)>& is_wanted,
                        std::string_view advice);

// Logs a warning that names the numbers that are missing among files such as 0.records, 1.records.
void warn_about_gaps(std::string_view data_name, std::span<const std::filesystem::path> files);

}  // namespace syncopate
