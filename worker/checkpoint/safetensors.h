// Files of named tensors in the safetensors format: u64 header length, JSON header, tensor bytes,
// all little-endian. The writer writes f32; the reader converts other types to f32. Used by
// checkpoint.cc and weights_file.cc, which know what the tensors mean. A checksum in the metadata
// covers header and bytes; other programs ignore it. Source: github.com/huggingface/safetensors,
// "Format".
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
#include "worker/checkpoint/element_types.h"

namespace syncopate {

struct TensorEntry {
  std::string name;
  Shape shape;
  std::string dtype = std::string(kF32Name);  // of the elements in the file
  std::uint64_t begin = 0;                    // first byte, counted from the end of the header
  std::uint64_t end = 0;
};

// Thrown for a file that is cut short, or changed since it was written. An older checkpoint may be
// sound.
class DamagedFileError : public FileError {
 public:
  explicit DamagedFileError(const std::string& fault)
      : FileError(fault + "; expected a checkpoint of syncopate train; try an older one"),
        fault_(fault) {}
  const std::string& fault() const noexcept { return fault_; }  // what() without its advice

 private:
  std::string fault_;
};

using FileMetadata = std::map<std::string, std::string>;

// The suffix of temporary files, before host and process id of the writer. A writer locks its file,
// so an unlocked file has lost its writer.
inline constexpr std::string_view kTemporarySuffix = ".tmp-";

// Writes the file `path` completely or leaves it unchanged. One thread only.
class SafetensorsWriter {
 public:
  // tensors: names and shapes in file order; the constructor sets the offsets, and throws
  // UsageError if a running job writes the file. All functions of the writer throw FileError; then
  // the temporary file is removed and `path` is unchanged.
  SafetensorsWriter(std::filesystem::path path, FileMetadata metadata,
                    std::vector<TensorEntry> tensors);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  // Appends the elements of the next tensor to the file.
  void append(std::span<const float> values);
  // Finishes the file after the last tensor: fills in the checksum, syncs the file, renames it and
  // syncs the folder.
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
  FileDescriptor lock_;  // keeps the lock from the file's opening to its rename
};

// Opens a file and validates its header against the file size: the tensors fill the rest of the
// file without gaps and overlaps. One thread only.
class SafetensorsReader {
 public:
  // Throws FileError for an unreadable file; DamagedFileError, naming file, byte and fault, for
  // damage. what: the noun for the file in messages.
  explicit SafetensorsReader(std::filesystem::path path, std::string what = "checkpoint");

  const FileMetadata& metadata() const noexcept { return metadata_; }
  const std::vector<TensorEntry>& tensors() const noexcept { return tensors_; }
  const TensorEntry* find(std::string_view name) const noexcept;  // null when absent

  // Reads the whole file. Throws DamagedFileError when its checksum does not match; FileError.
  void verify_checksum() const;
  // Reads a tensor into `values`, which has as many elements as the entry, and converts it to f32.
  // Throws FileError, also for a type that is not read (ElementType::to_f32).
  void read(const TensorEntry& entry, std::span<float> values) const;

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> bytes) const;
  void parse_header();
  // Returns the first byte in the file of a header's entry, for messages.
  std::uint64_t byte_of(const std::string& name) const;
  [[noreturn]] void damaged(std::uint64_t offset, const std::string& why) const;
  [[noreturn]] void cut_short(std::uint64_t expected, std::uint64_t found) const;

  std::filesystem::path path_;
  std::string what_;
  FileDescriptor file_;
  std::uint64_t file_size_ = 0;
  std::string header_;
  FileMetadata metadata_;
  std::vector<TensorEntry> tensors_;
};

}  // namespace syncopate
