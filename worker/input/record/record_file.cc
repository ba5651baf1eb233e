#include "worker/input/record/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nmmintrin.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "models/base/errors.h"
#include "worker/input/array/byte_stream.h"

namespace syncopate {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{4} << 20;  // of unpacked bytes

// Throws FileError unless it is a regular file.
struct stat status_of(int file, const std::string& path) {
  struct stat status = {};
  if (::fstat(file, &status) != 0) throw FileError(describe_errno("stat", path, errno));
  if (!S_ISREG(status.st_mode)) {
    throw FileError(path + ": no regular file; expected a TFRecord file");
  }
  return status;
}

FileStamp stamp_of(const struct stat& status) {
  return {.size_bytes = status.st_size,
          .modified = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
}

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::size_t offset) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

// Whether a header's checksum fits its length.
bool is_header(std::span<const std::byte> header) {
  return header.size() == kRecordHeaderBytes &&
         masked_crc32c(header.first(8)) == number_at<std::uint32_t>(header, 8);
}

// Whether a file may begin with a header of zlib, which TensorFlow writes with options='ZLIB'.
// Source: RFC 1950, section 2.2.
bool is_zlib(std::span<const std::byte> first) {
  constexpr unsigned kDeflate = 8;
  if (first.size() < 2) return false;
  const auto method = static_cast<unsigned>(first[0]);
  return (method & 0x0FU) == kDeflate && (256 * method + static_cast<unsigned>(first[1])) % 31 == 0;
}

[[noreturn]] void throw_record_error(const std::string& path, std::uint64_t offset,
                                     std::string_view reason) {
  throw FileError(fmt::format("{}: record at byte {}: {}", path, offset, reason));
}

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;  // of one system call

template <typename Number>
void append_number(Number number, std::vector<std::byte>& target) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  target.insert(target.end(), bytes.begin(), bytes.end());
}

}  // namespace

// The instruction is part of SSE4.2, and so of x86-64-v2, which every build requires. It takes 8
// bytes in 3 cycles, several times what a disk gives.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  std::uint64_t crc = 0xFFFFFFFF;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc = _mm_crc32_u64(crc, word);
    bytes = bytes.subspan(sizeof word);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (const std::byte byte : bytes) rest = _mm_crc32_u8(rest, static_cast<std::uint8_t>(byte));
  return ~rest;
}

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint32_t kMaskDelta = 0xA282EAD8;
  return std::rotr(crc32c(bytes), 15) + kMaskDelta;
}

RecordFile::RecordFile(const std::filesystem::path& path, UnpackedBudget& budget)
    : path_(path.string()), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_) {
    const int error = errno;
    throw FileError(describe_errno("open", path_, error) +
                    (error == ENOENT ? "; if it is a symbolic link, its target is missing"
                                     : "; let this user read the file"));
  }
  const struct stat status = status_of(file_.get(), path_);
  stamp_ = stamp_of(status);
  id_ = {.device = status.st_dev, .inode = status.st_ino};
  size_bytes_ = static_cast<std::uint64_t>(stamp_.size_bytes);
  std::array<std::byte, kRecordHeaderBytes> start{};
  const std::span<const std::byte> first(start.data(), read_at(0, start));
  // A length may begin with the bytes of gzip; its checksum tells the two apart.
  if (first.empty() || is_header(first)) return;
  if (first.size() < 2 || first[0] != std::byte{0x1F} || first[1] != std::byte{0x8B}) {
    throw FileError(fmt::format(
        "{}: no TFRecord file, plain or gzip: {}", path_,
        is_zlib(first) ? "it begins as zlib does; write it again with options='GZIP' or without "
                         "compression"
                       : "the checksum at byte 8 is not that of a length; expected a file of "
                         "TensorFlow's TFRecordWriter"));
  }
  unpack(budget);
}

void RecordFile::unpack(UnpackedBudget& budget) {
  const auto stream = open_byte_stream(path_, Packing::kGzip);
  const auto most = static_cast<std::uint64_t>(budget.bytes_left);
  size_bytes_ = 0;
  do {
    // One byte more than the budget tells a file that just fits from one that does not.
    blocks_.push_back(
        read_up_to(*stream, std::min<std::uint64_t>(kBlockBytes, most + 1 - size_bytes_)));
    size_bytes_ += blocks_.back().size();
    if (size_bytes_ > most) {
      throw FileError(fmt::format(
          "{0}: gzip of {1} bytes that unpacks to more than {2} bytes; unpacked files stay in "
          "memory and may take half of what is free, together; unpack them on the disk: gzip "
          "--decompress --stdout {0} > NEW_FILE",
          path_, stamp_.size_bytes, most));
    }
  } while (blocks_.back().size() == kBlockBytes);
  blocks_.back().shrink_to_fit();
  budget.bytes_left -= static_cast<std::int64_t>(size_bytes_);
  is_unpacked_ = true;
}

std::size_t RecordFile::read_at(std::uint64_t offset, std::span<std::byte> target) const {
  if (is_unpacked_) {
    std::size_t copied = 0;
    while (copied < target.size() && offset < size_bytes_) {
      const auto rest = std::as_bytes(std::span(blocks_[offset / kBlockBytes]))
                            .subspan(static_cast<std::size_t>(offset % kBlockBytes));
      const std::size_t count = std::min(rest.size(), target.size() - copied);
      std::copy_n(rest.begin(), count, target.begin() + static_cast<std::ptrdiff_t>(copied));
      copied += count;
      offset += count;
    }
    return copied;
  }
  return read_up_to_end(file_, path_, offset, target);
}

void RecordFile::read_exactly(std::uint64_t offset, std::span<std::byte> target,
                              std::uint64_t record_offset) const {
  const std::size_t got = read_at(offset, target);
  if (got == target.size()) return;
  throw_record_error(
      path_, record_offset,
      fmt::format("the file ends at byte {}, inside this record; fetch the file again",
                  offset + got));
}

void RecordFile::require_unchanged() const {
  if (is_unpacked_ || stamp_of(status_of(file_.get(), path_)) == stamp_) return;
  throw BadSampleError(path_ +
                       ": the file changed while it was in use; start again with files that do not "
                       "change");
}

std::uint64_t RecordFile::read_length(std::uint64_t offset) const {
  std::array<std::byte, kRecordHeaderBytes> header{};
  read_exactly(offset, header, offset);
  if (!is_header(header)) {
    throw_record_error(path_, offset,
                       "the checksum of its length is wrong, so that no record behind it can be "
                       "found; fetch the file again");
  }
  const auto length = number_at<std::uint64_t>(header, 0);
  const std::uint64_t rest = size_bytes_ - std::min(size_bytes_, offset + kRecordHeaderBytes);
  if (length > rest || rest - length < kRecordFooterBytes) {
    throw_record_error(
        path_, offset,
        fmt::format("the file ends at byte {}, inside this record of {} bytes; fetch the file "
                    "again",
                    size_bytes_, length));
  }
  return length;
}

std::vector<std::byte> RecordFile::read(const RecordPlace& place) const {
  require_unchanged();
  const std::uint64_t length = read_length(place.offset);
  if (length != place.length) {
    throw_record_error(path_, place.offset,
                       fmt::format("{} bytes long; the index says {}", length, place.length));
  }
  std::vector<std::byte> bytes(length + kRecordFooterBytes);
  read_exactly(place.offset + kRecordHeaderBytes, bytes, place.offset);
  const auto expected = number_at<std::uint32_t>(bytes, length);
  bytes.resize(length);
  if (masked_crc32c(bytes) != expected) {
    throw_record_error(path_, place.offset,
                       "the checksum of its bytes is wrong; fetch the file again");
  }
  return bytes;
}

void RecordFile::scan(const Visit& visit) const {
  std::vector<std::byte> bytes;
  for (std::uint64_t offset = 0; offset < size_bytes_;) {
    const RecordPlace place{offset, read_length(offset)};
    bytes.resize(place.length + kRecordFooterBytes);
    read_exactly(offset + kRecordHeaderBytes, bytes, offset);
    const auto payload = std::span<const std::byte>(bytes).first(place.length);
    visit(place, payload, masked_crc32c(payload) == number_at<std::uint32_t>(bytes, place.length));
    offset += kRecordHeaderBytes + place.length + kRecordFooterBytes;
  }
  require_unchanged();
}

std::string RecordFile::describe(const RecordPlace& place) const {
  return fmt::format("{}: record at byte {}", path_, place.offset);
}

void append_record(std::span<const std::byte> record, std::vector<std::byte>& target) {
  const std::uint64_t length = record.size();
  append_number(length, target);
  append_number(masked_crc32c(std::as_bytes(std::span(&length, 1))), target);
  target.insert(target.end(), record.begin(), record.end());
  append_number(masked_crc32c(record), target);
}

void RecordWriter::write(std::span<const std::byte> record) {
  append_record(record, buffer_);
  if (buffer_.size() >= kWriteBytes) flush();
}

void RecordWriter::commit() {
  flush();
  file_.commit();
}

void RecordWriter::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

}  // namespace syncopate
