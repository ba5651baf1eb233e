// The tensors of a file of weights: of one safetensors file, or of the shards that an index such as
// model.safetensors.index.json names. Used by weights_file.cc.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/checkpoint/safetensors.h"

namespace syncopate {

// Whether this is a JSON file: by its name, or by first bytes that no safetensors file has.
bool is_json_file(const std::filesystem::path& path);

// Reads an index: the file of each tensor, which is in the folder of the index. Throws UsageError
// for JSON that is no index, and for an index that names a file in another folder; FileError.
std::map<std::string, std::string> read_shard_index(const std::filesystem::path& path);

// Whether read_shard_index() can read this file.
bool is_shard_index(const std::filesystem::path& path);

// Returns the files that the index names, each once.
std::vector<std::filesystem::path> shards_of(const std::filesystem::path& index);

// Returns the index in the same folder that names this file; "" if there is none.
std::filesystem::path index_beside(const std::filesystem::path& shard);

// Returns the index of the shards that this file belongs to: the index in its folder that names it.
// If there is none and the file has a name such as model-00001-of-00002.safetensors, returns the
// name that the index would have. "" for other files.
std::filesystem::path index_of_shard(const std::filesystem::path& path);

// Opens one file, or all shards of an index, and validates their headers. One thread only.
class StoredWeights {
 public:
  // Throws what read_shard_index() and SafetensorsReader throw; UsageError for a missing shard, and
  // for a tensor that is not in the shard that the index names.
  explicit StoredWeights(const std::filesystem::path& path);

  // The metadata of one file; not used for shards.
  const FileMetadata& metadata() const noexcept;
  void verify_checksum() const;  // of one file
  const std::vector<TensorEntry>& tensors() const noexcept { return tensors_; }
  const TensorEntry* find(std::string_view name) const;  // null when absent
  // Reads one of tensors(). Throws what SafetensorsReader::read() throws.
  void read(const TensorEntry& entry, std::span<float> values) const;

 private:
  void add(const SafetensorsReader& file, const TensorEntry& entry);

  std::deque<SafetensorsReader> files_;
  std::vector<TensorEntry> tensors_;
  std::vector<const SafetensorsReader*> file_of_;  // by index into tensors_
  std::map<std::string, std::size_t, std::less<>> by_name_;
  FileMetadata no_metadata_;
};

}  // namespace syncopate
