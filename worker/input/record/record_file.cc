#include "worker/input/record/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "models/base/errors.h"
#include "worker/input/byte_stream.h"
#include "worker/input/record/crc32c.h"

namespace syncopate {
namespace {

FileStamp stamp_of(int file, const std::string& path) {
  struct stat status = {};
  if (::fstat(file, &status) != 0) throw FileError(describe_errno("stat", path, errno));
  if (!S_ISREG(status.st_mode)) {
    throw FileError(path + ": no regular file; expected a TFRecord file");
  }
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

[[noreturn]] void throw_record_error(const std::string& path, std::uint64_t offset,
                                     std::string_view reason) {
  throw FileError(fmt::format("{}: record at byte {}: {}", path, offset, reason));
}

}  // namespace

std::int64_t half_of_free_memory() {
  std::int64_t free_bytes = std::numeric_limits<std::int64_t>::max();
  std::ifstream machine("/proc/meminfo");
  for (std::string line; std::getline(machine, line);) {
    long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %lld kB", &kilobytes) == 1) {
      free_bytes = kilobytes * 1024;
    }
  }
  // The file of a cgroup without a limit says "max", which is no number.
  std::int64_t limit = 0;
  std::int64_t used = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit &&
      std::ifstream("/sys/fs/cgroup/memory.current") >> used) {
    free_bytes = std::min(free_bytes, std::max<std::int64_t>(0, limit - used));
  }
  return free_bytes / 2;
}

RecordFile::RecordFile(const std::filesystem::path& path, UnpackedBudget& budget)
    : path_(path.string()), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_) throw FileError(describe_errno("open", path_, errno));
  stamp_ = stamp_of(file_.get(), path_);
  size_bytes_ = static_cast<std::uint64_t>(stamp_.size_bytes);
  std::array<std::byte, kRecordHeaderBytes> start{};
  const std::span<const std::byte> first(start.data(), read_at(0, start));
  // A length may begin with the bytes of gzip; its checksum tells the two apart.
  if (first.empty() || is_header(first)) return;
  if (first.size() < 2 || first[0] != std::byte{0x1F} || first[1] != std::byte{0x8B}) {
    throw FileError(fmt::format(
        "{}: no TFRecord file, plain or gzip: the checksum at byte 8 is not that of a length",
        path_));
  }
  unpack(budget);
}

void RecordFile::unpack(UnpackedBudget& budget) {
  const auto stream = open_byte_stream(path_, Packing::kGzip);
  // One byte more than the budget tells a file that just fits from one that does not.
  unpacked_ = read_up_to(*stream, static_cast<std::uint64_t>(budget.bytes_left) + 1);
  const auto size = static_cast<std::int64_t>(unpacked_.size());
  if (size > budget.bytes_left) {
    throw FileError(
        fmt::format("{}: gzip of {} bytes that unpacks to more than {} MB, which is what is left "
                    "of half of the "
                    "free memory; unpack the files: gunzip --keep {}",
                    path_, stamp_.size_bytes, budget.bytes_left / 1'000'000, path_));
  }
  budget.bytes_left -= size;
  unpacked_.shrink_to_fit();
  is_unpacked_ = true;
  size_bytes_ = unpacked_.size();
}

std::size_t RecordFile::read_at(std::uint64_t offset, std::span<std::byte> target) const {
  if (is_unpacked_) {
    const auto all = std::as_bytes(std::span(unpacked_));
    const auto rest = all.subspan(std::min<std::uint64_t>(offset, all.size()));
    const std::size_t count = std::min(rest.size(), target.size());
    std::copy_n(rest.begin(), count, target.begin());
    return count;
  }
  std::size_t done = 0;
  while (done < target.size()) {
    const ssize_t got = ::pread(file_.get(), target.data() + done, target.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw FileError(describe_errno(fmt::format("read byte {} of", offset + done), path_, errno));
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
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
  if (is_unpacked_ || stamp_of(file_.get(), path_) == stamp_) return;
  throw FileError(path_ +
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
    throw_record_error(path_, place.offset, "the checksum of its bytes is wrong");
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

}  // namespace syncopate
