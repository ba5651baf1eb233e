#include "worker/input/pictures/sample_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

constexpr std::size_t kChecksumBytes = sizeof(std::uint64_t);

// Four independent lanes, so that the multiplications overlap. Each step is a bijection of its
// lane, so a change within one word always changes the result. Never 0, which an empty slot has.
std::uint64_t checksum(std::uint64_t key, std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  std::array<std::uint64_t, 4> lanes = {key, key + 1, key + 2, key + 3};
  std::size_t lane = 0;
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), size);
    bytes = bytes.subspan(size);
    lanes[lane] = std::rotl((lanes[lane] ^ word) * kFactor, 29);
    lane = (lane + 1) % lanes.size();
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t value : lanes) sum = std::rotl((sum ^ value) * kFactor, 31);
  return sum == 0 ? 1 : sum;
}

void warn(const std::filesystem::path& path, std::string_view problem) {
  log(LogLevel::kWarning,
      fmt::format("no cache of decoded samples: {}: {}; samples are decoded in every epoch, give "
                  "another --cache-dir",
                  path.string(), problem));
}

// Returns half of the free bytes on the disk of this file. The file itself counts as free.
std::int64_t half_of_disk(int file, std::int64_t used_bytes) {
  struct statvfs room = {};
  if (::fstatvfs(file, &room) != 0) return 0;
  return (static_cast<std::int64_t>(room.f_bavail) * static_cast<std::int64_t>(room.f_frsize) +
          used_bytes) /
         2;
}

}  // namespace

SampleCache::SampleCache(FileDescriptor file, std::filesystem::path path, std::int64_t sample_bytes,
                         std::int64_t num_slots)
    : file_(std::move(file)),
      path_(std::move(path)),
      sample_bytes_(sample_bytes),
      num_slots_(num_slots) {}

std::unique_ptr<SampleCache> SampleCache::open(const std::filesystem::path& path,
                                               std::int64_t sample_bytes,
                                               std::int64_t limit_bytes) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    warn(path, error.message());
    return nullptr;
  }
  // In a folder of all users, another user may have put a link or a file at this place.
  FileDescriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    warn(path, std::generic_category().message(errno));
    return nullptr;
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
    warn(path, "not a file of this user");
    return nullptr;
  }
  if (limit_bytes < 0) limit_bytes = half_of_disk(file.get(), status.st_blocks * 512);
  const auto slot_bytes = sample_bytes + static_cast<std::int64_t>(kChecksumBytes);
  return std::unique_ptr<SampleCache>(
      new SampleCache(std::move(file), path, sample_bytes, limit_bytes / slot_bytes));
}

bool SampleCache::read(std::int64_t index, std::uint64_t key, std::span<std::byte> sample) const {
  if (index >= num_slots_) return false;
  check(static_cast<std::int64_t>(sample.size()) == sample_bytes_, "a sample of another size");
  std::uint64_t found = 0;
  const std::array<iovec, 2> parts = {iovec{&found, kChecksumBytes},
                                      iovec{sample.data(), sample.size()}};
  const std::size_t slot_bytes = kChecksumBytes + sample.size();
  const auto offset = static_cast<off_t>(static_cast<std::size_t>(index) * slot_bytes);
  const ssize_t count = ::preadv(file_.get(), parts.data(), parts.size(), offset);
  return count == static_cast<ssize_t>(slot_bytes) && found != 0 && found == checksum(key, sample);
}

void SampleCache::write(std::int64_t index, std::uint64_t key, std::span<const std::byte> sample) {
  if (index >= num_slots_ || !is_writable_.load(std::memory_order_relaxed)) return;
  check(static_cast<std::int64_t>(sample.size()) == sample_bytes_, "a sample of another size");
  std::uint64_t sum = checksum(key, sample);
  const std::array<iovec, 2> parts = {iovec{&sum, kChecksumBytes},
                                      iovec{const_cast<std::byte*>(sample.data()), sample.size()}};
  const std::size_t slot_bytes = kChecksumBytes + sample.size();
  const auto offset = static_cast<off_t>(static_cast<std::size_t>(index) * slot_bytes);
  const ssize_t count = ::pwritev(file_.get(), parts.data(), parts.size(), offset);
  if (count == static_cast<ssize_t>(slot_bytes)) return;
  const int code = count < 0 ? errno : ENOSPC;
  if (is_writable_.exchange(false)) warn(path_, std::generic_category().message(code));
}

}  // namespace syncopate
