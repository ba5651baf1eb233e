// The metadata of a checkpoint, which are the strings that its safetensors file has beside the
// tensors. checkpoint.cc writes and reads them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {

// Returns the error for a damaged checkpoint; `fault` describes the damage.
DamagedFileError damaged_checkpoint(const std::filesystem::path& path, std::string_view fault);

// Converts `info` to the metadata of a checkpoint.
FileMetadata checkpoint_metadata(const CheckpointInfo& info);

// Checks that a file is a checkpoint in the format version of this program. Throws DamagedFileError
// if the header of a checkpoint is damaged; throws FileError for a file of another program or
// version.
void check_format_version(const SafetensorsReader& file, const std::filesystem::path& path);

// Returns the metadata entry `key`. Throws DamagedFileError if the file does not have this entry.
std::string metadata_text(const SafetensorsReader& file, const std::filesystem::path& path,
                          std::string_view key);

// Converts the metadata of a file to a CheckpointInfo. Throws DamagedFileError for an entry that is
// missing or invalid.
CheckpointInfo checkpoint_info(const SafetensorsReader& file, const std::filesystem::path& path);

}  // namespace syncopate
