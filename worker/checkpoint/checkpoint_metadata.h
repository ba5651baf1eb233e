// The metadata of a checkpoint: what a safetensors file of ours records beside its tensors, as
// strings. checkpoint.cc writes and reads them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {

// Returns the error of a checkpoint that is damaged; `fault` says how.
DamagedFileError damaged_checkpoint(const std::filesystem::path& path, std::string_view fault);

// Returns the metadata of a checkpoint with this content.
FileMetadata checkpoint_metadata(const CheckpointInfo& info);

// Throws DamagedFileError or FileError unless this program reads the file's format version.
void check_format_version(const SafetensorsReader& file, const std::filesystem::path& path);

// Returns one entry of the metadata. Throws DamagedFileError if the file lacks it.
std::string metadata_text(const SafetensorsReader& file, const std::filesystem::path& path,
                          std::string_view key);

// Returns what the metadata record. Throws DamagedFileError for an entry that is missing or wrong.
CheckpointInfo checkpoint_info(const SafetensorsReader& file, const std::filesystem::path& path);

}  // namespace syncopate
