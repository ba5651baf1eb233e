// A TFRecord file: records of any bytes, each with checksums of its length and of its bytes. Plain
// files are read where they are; gzip files are unpacked into memory, since they have no way to
// reach a record but from the start.
//
// A record is a u64 length, the masked CRC-32C of these 8 bytes, the bytes, and their masked
// CRC-32C, all little-endian. Source: TensorFlow, core/lib/io/record_writer.h.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"

namespace syncopate {

inline constexpr std::size_t kRecordHeaderBytes = 12;  // length and its checksum
inline constexpr std::size_t kRecordFooterBytes = 4;   // checksum of the bytes

// Where a record is, in the unpacked file.
struct RecordPlace {
  std::uint64_t offset = 0;  // of its header, in bytes
  std::uint64_t length = 0;  // of its bytes, without header and footer

  friend bool operator==(const RecordPlace&, const RecordPlace&) = default;
};

// Tells whether a file is still the one that was indexed.
struct FileStamp {
  std::int64_t size_bytes = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Identifies a file under any of its names.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  friend auto operator<=>(const FileId&, const FileId&) = default;
};

// How much memory the unpacked files of one data set may take.
struct UnpackedBudget {
  std::int64_t bytes_left = 0;
};

// Thread-safe. Plain files are read by pread and not mapped: a file that is cut short while it is
// in use is then an error with a message, and no bus error.
class RecordFile {
 public:
  // Opens a file, and unpacks it within the budget if it is gzip. Throws FileError: the file cannot
  // be read, is no TFRecord file, is damaged gzip, or does not fit into the budget.
  RecordFile(const std::filesystem::path& path, UnpackedBudget& budget);

  const std::string& path() const noexcept { return path_; }
  const FileStamp& stamp() const noexcept { return stamp_; }
  const FileId& id() const noexcept { return id_; }
  // Whether the file was unpacked. Offsets then count unpacked bytes.
  bool is_unpacked() const noexcept { return is_unpacked_; }
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }  // unpacked

  // Returns the bytes of a record. Throws FileError naming path, offset and reason: a checksum or
  // the length is wrong; and BadSampleError: the file changed since it was opened.
  std::vector<std::byte> read(const RecordPlace& place) const;

  // Calls visit(place, bytes, is_intact) for each record in order; is_intact: the checksum of its
  // bytes is right. Throws FileError as read() for a wrong length, behind which no record can be
  // found, and for a file that ends inside a record; and what `visit` throws.
  using Visit = std::function<void(const RecordPlace& place, std::span<const std::byte> bytes,
                                   bool is_intact)>;
  void scan(const Visit& visit) const;

  // Returns "PATH: record at byte N", for messages.
  std::string describe(const RecordPlace& place) const;

 private:
  std::uint64_t read_length(std::uint64_t offset) const;
  void read_exactly(std::uint64_t offset, std::span<std::byte> target,
                    std::uint64_t record_offset) const;
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> target) const;
  void require_unchanged() const;
  void unpack(UnpackedBudget& budget);

  std::string path_;
  FileDescriptor file_;
  FileStamp stamp_;
  FileId id_;
  std::uint64_t size_bytes_ = 0;
  bool is_unpacked_ = false;
  // The unpacked bytes: blocks of kBlockBytes, but for the last one. One block that grows would be
  // copied, and take twice its size during the copy.
  std::vector<std::vector<std::uint8_t>> blocks_;
};

}  // namespace syncopate
