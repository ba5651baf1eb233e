// Writes and reads files of named tensors in the safetensors format, which has a u64 header length,
// a JSON header and the tensor bytes, all little-endian. The writer writes f32; the reader converts
// other types to f32. Used by checkpoint.cc and weights_file.cc, which interpret the tensors. A
// checksum in the metadata covers header and bytes; other programs ignore it. Source:
// github.com/huggingface/safetensors, "Format".
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
  std::string dtype = std::string(kF32Name);  // element type in the file
  std::uint64_t begin = 0;                    // first byte, counted from the end of the header
  std::uint64_t end = 0;
};

// Thrown for a file that is cut short or was changed after it was written. An older checkpoint may
// be intact.
class DamagedFileError : public FileError {
 public:
  explicit DamagedFileError(const std::string& fault)
      : FileError(fault + "; expected a checkpoint of syncopate train; try an older one"),
        fault_(fault) {}
  // Returns the text of what() without the advice at its end.
  const std::string& fault() const noexcept { return fault_; }

 private:
  std::string fault_;
};

using FileMetadata = std::map<std::string, std::string>;

// The suffix of temporary files; it is followed by the host and the process id of the writer. A
// writer locks its temporary file, so the writer of an unlocked temporary file has ended.
inline constexpr std::string_view kTemporarySuffix = ".tmp-";

// Writes the file `path` completely or leaves it unchanged. One thread only.
class SafetensorsWriter {
 public:
  // Creates the temporary file and writes its header. tensors: names and shapes in the order of the
  // file; the constructor sets their members `begin` and `end`. Throws UsageError if a running job
  // writes the file. All functions of the writer throw FileError; then the temporary file is
  // removed and `path` is unchanged.
  SafetensorsWriter(std::filesystem::path path, FileMetadata metadata,
                    std::vector<TensorEntry> tensors);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  // Appends the elements of the next tensor to the file.
  void append(std::span<const float> values);
  // Completes the file after the last tensor: writes the checksum, syncs the file, renames it and
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
  FileDescriptor lock_;  // holds the lock from the opening of the file until it is renamed
};

// Reads a safetensors file. The constructor checks that the tensors of the header fill the rest of
// the file without gaps and overlaps. One thread only.
class SafetensorsReader {
 public:
  // Opens a file and checks its header. what: the noun for the file in messages. Throws FileError
  // if the file cannot be read. Throws DamagedFileError naming file, byte and fault if the header
  // is damaged.
  explicit SafetensorsReader(std::filesystem::path path, std::string what = "checkpoint");

  const FileMetadata& metadata() const noexcept { return metadata_; }
  const std::vector<TensorEntry>& tensors() const noexcept { return tensors_; }
  const TensorEntry* find(std::string_view name) const noexcept;  // null when absent

  // Reads the whole file and compares its checksum with the checksum in the metadata. Throws
  // DamagedFileError if the checksums differ. Throws FileError if the file cannot be read.
  void verify_checksum() const;
  // Reads a tensor into `values`, which has as many elements as the entry, and converts it to f32.
  // Throws FileError if the file cannot be read, or if ElementType::to_f32 of the tensor's type is
  // null.
  void read(const TensorEntry& entry, std::span<float> values) const;

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> bytes) const;
  void parse_header();
  // Returns the offset in the file, in bytes, at which the header's entry of this tensor starts;
  // used in messages.
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
