// Reads and writes TFRecord files. Such a file has records of any bytes, each with a checksum of
// the record's length and a checksum of the record's bytes. Records of plain files are read from
// the file. Files packed by gzip are unpacked into memory, because a gzip file can only be read
// from the start.
//
// A record consists of a u64 length, the masked CRC-32C of these 8 bytes, the bytes of the record,
// and the masked CRC-32C of the bytes, all little-endian. Source: TensorFlow,
// core/lib/io/record_writer.h.
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
#include "models/base/replacing_file.h"

namespace syncopate {

inline constexpr std::size_t kRecordHeaderBytes = 12;  // bytes of the length and its checksum
inline constexpr std::size_t kRecordFooterBytes = 4;  // bytes of the checksum of the record's bytes

// The place of a record in the unpacked file.
struct RecordPlace {
  std::uint64_t offset = 0;  // byte at which the header starts
  std::uint64_t length = 0;  // number of bytes of the record, without header and footer

  friend bool operator==(const RecordPlace&, const RecordPlace&) = default;
};

// The size of a file and the time of its last change. A file with the same stamp as when it was
// indexed is taken to be unchanged.
struct FileStamp {
  std::int64_t size_bytes = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Identifies a file independently of its name.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  friend auto operator<=>(const FileId&, const FileId&) = default;
};

// The memory that the unpacked files of one data set may still use.
struct UnpackedBudget {
  std::int64_t bytes_left = 0;
};

// Reads the records of one TFRecord file. Thread-safe. Plain files are read by pread and not
// mapped, so that a file that is cut short during use causes an exception and not a bus error.
class RecordFile {
 public:
  // Opens a file. If it is gzip, unpacks it and subtracts its size from the budget. Throws
  // FileError if the file cannot be read, is not a TFRecord file, is damaged gzip, or does not fit
  // into the budget.
  RecordFile(const std::filesystem::path& path, UnpackedBudget& budget);

  const std::string& path() const noexcept { return path_; }
  const FileStamp& stamp() const noexcept { return stamp_; }
  const FileId& id() const noexcept { return id_; }
  // Whether the file was unpacked. Offsets then count unpacked bytes.
  bool is_unpacked() const noexcept { return is_unpacked_; }
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }  // after unpacking

  // Returns the bytes of a record. Throws FileError naming path, offset and reason if a checksum or
  // the length is wrong. Throws BadSampleError if the file has changed since it was opened.
  std::vector<std::byte> read(const RecordPlace& place) const;

  // A function that scan() calls for each record in the order of the file. is_intact: whether the
  // checksum of the record's bytes is correct. scan() throws FileError if the file ends inside a
  // record or if a length is wrong, because later records then cannot be found. It also throws what
  // `visit` throws.
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
  // The unpacked bytes in blocks of kBlockBytes; the last block may be shorter. A single growing
  // block would have to be copied, and would take twice its size during the copy.
  std::vector<std::vector<std::uint8_t>> blocks_;
};

// Writes one TFRecord file. The file gets its name when all records are written, so that a reader
// never sees an incomplete file. Every function throws FileError. One thread only.
class RecordWriter {
 public:
  explicit RecordWriter(std::filesystem::path path) : file_(std::move(path)) {}

  void write(std::span<const std::byte> record);
  // Syncs the file and gives it its name. If commit() is not called, the destructor removes the
  // file.
  void commit();

 private:
  void flush();

  ReplacingFile file_;
  std::vector<std::byte> buffer_;
};

// Appends a record in the form of a TFRecord file, with its length and checksums, to `target`.
void append_record(std::span<const std::byte> record, std::vector<std::byte>& target);

// Returns the CRC-32C of `bytes`, with the reflected polynomial 0x82F63B78. The CRC-32C of
// "123456789" is 0xE3069283. Source: RFC 3720, appendix B.4.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

// Returns the CRC-32C in the form that TFRecord stores: rotated by 15 bits, plus a constant. An
// unmasked CRC would be weak for data that contain CRCs. Source: TensorFlow,
// core/lib/hash/crc32c.h.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes) noexcept;

}  // namespace syncopate
