// Reads weights from one safetensors file, or from several such files (shards) that an index such
// as model.safetensors.index.json names. Used by weights_file.cc.
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

// Whether a file is a JSON file. This is so if its name ends in .json, or if it begins with '{' and
// its first 8 bytes cannot be the header length of a safetensors file.
bool is_json_file(const std::filesystem::path& path);

// Reads an index. Returns a map from the name of each tensor to the name of the file that has the
// tensor. These files are in the folder of the index. Throws UsageError if the JSON file is not an
// index, or names a file in another folder. Throws FileError.
std::map<std::string, std::string> read_shard_index(const std::filesystem::path& path);

// Whether read_shard_index() can read this file.
bool is_shard_index(const std::filesystem::path& path);

// Returns the files that the index names, without duplicates.
std::vector<std::filesystem::path> shards_of(const std::filesystem::path& index);

// Returns the index that names this shard and is in the same folder; "" if there is none.
std::filesystem::path index_beside(const std::filesystem::path& shard);

// Returns the index beside this file if the file is a shard, see index_beside(). If there is no
// index but the file has a name such as model-00001-of-00002.safetensors, returns the name that the
// index would have. Returns "" for other files.
std::filesystem::path index_of_shard(const std::filesystem::path& path);

// Reads tensors from one file of weights, or from all shards of an index. One thread only.
class StoredWeights {
 public:
  // Opens the file, or the index and its shards, and checks their headers. Throws UsageError if a
  // shard is missing, or a tensor is not in the shard that the index names for it. Also throws what
  // read_shard_index() and SafetensorsReader throw.
  explicit StoredWeights(const std::filesystem::path& path);

  // Returns the metadata of a single file; empty for shards.
  const FileMetadata& metadata() const noexcept;
  void verify_checksum() const;  // only for a single file, not for shards
  const std::vector<TensorEntry>& tensors() const noexcept { return tensors_; }
  const TensorEntry* find(std::string_view name) const;  // null when absent
  // Reads one of tensors(). Throws what SafetensorsReader::read() throws.
  void read(const TensorEntry& entry, std::span<float> values) const;

 private:
  void add(const SafetensorsReader& file, const TensorEntry& entry);

  std::deque<SafetensorsReader> files_;
  std::vector<TensorEntry> tensors_;
  std::vector<const SafetensorsReader*> file_of_;  // the file of each element of tensors_
  std::map<std::string, std::size_t, std::less<>> by_name_;
  FileMetadata no_metadata_;
};

}  // namespace syncopate
