// Files of named f32 tensors in the safetensors format: u64 header length, JSON header, tensor
// bytes, all little-endian. Called by checkpoint.cc, which knows what the tensors mean. A checksum
// in the metadata covers header and bytes; other readers of the format ignore it.
// Source: github.com/huggingface/safetensors, "Format".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/tensor/tensor.h"

namespace syncopate {

struct TensorEntry {
  std::string name;
  Shape shape;
  std::uint64_t begin = 0;  // bytes, from the end of the header
  std::uint64_t end = 0;
};

// Thrown for a file whose bytes are not those that were written: it is cut short or changed. An
// older checkpoint may be sound.
class DamagedFileError : public FileError {
 public:
  explicit DamagedFileError(const std::string& fault)
      : FileError(fault + "; use an older one"), fault_(fault) {}
  const std::string& fault() const noexcept { return fault_; }  // without what to try

 private:
  std::string fault_;
};

using FileMetadata = std::map<std::string, std::string>;

// What temporary files end with, before the writer's host and process number. As long as one is
// written it is locked: who finds it unlocked knows that its writer is gone.
inline constexpr std::string_view kTemporarySuffix = ".tmp-";

// Writes `path` as a whole or not at all. One thread only.
class SafetensorsWriter {
 public:
  // The tensors' names and shapes, in file order; offsets are assigned here.
  // Throws FileError, here and below; the temporary file is gone then and `path` as it was.
  SafetensorsWriter(std::filesystem::path path, FileMetadata metadata,
                    std::vector<TensorEntry> tensors);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  // The next tensor's elements.
  void append(std::span<const float> values);
  // After the last tensor: fills in the checksum, syncs, renames, syncs the folder.
  void commit();

 private:
  void write(std::span<const std::byte> bytes);
  std::string header() const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileMetadata metadata_;
  std::vector<TensorEntry> tensors_;
  std::size_t next_ = 0;
  std::uint32_t checksum_ = 0;
  FileDescriptor file_;
  FileDescriptor lock_;  // the same file: locked until it is renamed, when file_ is closed already
};

// Opens and validates a file; nothing of it is believed before it was held against the file's size.
class SafetensorsReader {
 public:
  // Throws FileError: unreadable; DamagedFileError.
  explicit SafetensorsReader(std::filesystem::path path);

  const FileMetadata& metadata() const noexcept { return metadata_; }
  const std::vector<TensorEntry>& tensors() const noexcept { return tensors_; }
  const TensorEntry* find(std::string_view name) const noexcept;  // null when absent

  // Reads the whole file once. Throws DamagedFileError unless it is as it was written; FileError.
  void verify_checksum() const;
  // Fills `values`, as many as the entry has. Throws FileError.
  void read(const TensorEntry& entry, std::span<float> values) const;

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> bytes) const;
  void parse_header();

  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t file_size_ = 0;
  std::string header_;
  FileMetadata metadata_;
  std::vector<TensorEntry> tensors_;
};

}  // namespace syncopate
