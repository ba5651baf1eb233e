#include "worker/input/pixel_cache.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"

namespace syncopate {
namespace {

// The header of a cache file, little-endian as all machines that this program runs on.
struct Header {
  std::array<char, 8> magic{'S', 'Y', 'N', 'C', 'P', 'I', 'X', '1'};
  std::uint32_t version = 0;
  std::uint32_t reserved = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t checksum = 0;
  std::array<std::uint8_t, 32> padding{};  // the payload starts on a cache line
};
static_assert(sizeof(Header) == 64);

// Hashes by FNV-1a over 64-bit words in four lanes: 55 MB take a few milliseconds; one lane of
// bytes takes 70.
std::uint64_t checksum_of(std::span<const std::uint8_t> bytes) {
  constexpr std::uint64_t kOffset = 0xCBF29CE484222325ULL;
  constexpr std::uint64_t kPrime = 0x100000001B3ULL;
  std::array<std::uint64_t, 4> lanes{kOffset, kOffset + 1, kOffset + 2, kOffset + 3};
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    std::array<std::uint64_t, 4> words{};
    std::memcpy(words.data(), bytes.data() + at, 32);
    for (std::size_t lane = 0; lane < 4; ++lane) {
      lanes[lane] = (lanes[lane] ^ words[lane]) * kPrime;
      lanes[lane] ^= lanes[lane] >> 29;  // high bits must reach low ones
    }
  }
  for (; at < bytes.size(); ++at) lanes[at % 4] = (lanes[at % 4] ^ bytes[at]) * kPrime;
  std::uint64_t sum = kOffset;
  for (const std::uint64_t lane : lanes) sum = (sum ^ lane) * kPrime;
  return sum;
}

Header make_header(const PixelCacheKey& key, std::span<const std::uint8_t> payload) {
  Header header;
  header.version = key.version;
  header.payload_bytes = payload.size();
  header.checksum = checksum_of(payload);
  return header;
}

}  // namespace

std::optional<MappedPayload> map_pixel_cache(const std::filesystem::path& path,
                                             const PixelCacheKey& key) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return std::nullopt;
  const std::size_t size = sizeof(Header) + static_cast<std::size_t>(key.payload_bytes);
  if (status.st_size != static_cast<off_t>(size)) return std::nullopt;

  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (address == MAP_FAILED) return std::nullopt;
  const std::shared_ptr<const void> memory(
      address, [size](const void* mapped) { ::munmap(const_cast<void*>(mapped), size); });
  const auto* const bytes = static_cast<const std::uint8_t*>(address);
  const std::span<const std::uint8_t> payload(bytes + sizeof(Header), size - sizeof(Header));
  Header found;
  std::memcpy(&found, bytes, sizeof(Header));
  const Header expected = make_header(key, payload);
  if (std::memcmp(&found, &expected, sizeof(Header)) != 0) return std::nullopt;
  return MappedPayload{payload, memory};
}

std::optional<MappedPayload> map_pixel_cache_of_any_size(const std::filesystem::path& path,
                                                         std::uint32_t version) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size < sizeof(Header)) return std::nullopt;
  return map_pixel_cache(path, {.version = version, .payload_bytes = size - sizeof(Header)});
}

void write_pixel_cache(const std::filesystem::path& path, const PixelCacheKey& key,
                       std::span<const std::uint8_t> payload) {
  check(payload.size() == key.payload_bytes, "a cache payload of another size than its key says");
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) throw FileError(describe_errno("create", path.parent_path().string(), error.value()));
  // mkostemp() makes files that only their owner reads, whatever the umask.
  constexpr mode_t kCacheMode = 0666;
  std::random_device random;
  const std::string temporary = fmt::format("{}.{:08x}{:08x}", path.string(), random(), random());
  const FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kCacheMode));
  if (!file) throw FileError(describe_errno("create", temporary, errno));
  try {
    const Header header = make_header(key, payload);
    for (const auto bytes : {std::as_bytes(std::span(&header, 1)), std::as_bytes(payload)}) {
      if (write_all(file, bytes) == bytes.size()) continue;
      throw FileError(describe_errno("write", temporary, errno));
    }
    // No fsync: the checksum finds a file that a power cut damaged.
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw FileError(describe_errno("rename to", path.string(), errno));
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace syncopate
