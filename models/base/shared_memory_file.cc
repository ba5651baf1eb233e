#include "models/base/shared_memory_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <string>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Throws after a system call failed to create or allocate shared memory: OutOfMemoryError if
// `errno` says that memory is short, FileError otherwise.
[[noreturn]] void report_refusal(const char* action, std::size_t bytes, std::string_view purpose) {
  const int reason = errno;
  // errno EFAULT: pages of the mapping could not be allocated, so a write would raise SIGBUS.
  if (reason != ENOMEM && reason != ENOSPC && reason != EFAULT) {
    throw FileError(describe_errno(action, "shared memory", reason));
  }
  throw OutOfMemoryError(fmt::format(
      "shared memory: {} MiB for {} are not available ({}); start fewer replicas on this machine "
      "or give the job more memory",
      bytes >> 20, purpose, describe_errno(action, "shared memory", reason)));
}

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// FUTEX_PRIVATE_FLAG is not set because other processes may share the memory of the word.
void call_futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
                const timespec* timeout) noexcept {
  syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

std::size_t whole_huge_pages(std::size_t size_bytes) noexcept {
  return (size_bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

FileDescriptor make_shared_memory_file(std::size_t size_bytes, std::string_view purpose) {
  FileDescriptor file(memfd_create("syncopate", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    report_refusal("make", size_bytes, purpose);
  }
  return file;
}

bool is_sealed_against_shrinking(int file) noexcept {
  const int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

SharedMapping::SharedMapping(int file, std::size_t size_bytes, std::string_view purpose)
    : begin_(nullptr), size_bytes_(size_bytes) {
  void* mapping = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapping == MAP_FAILED) report_refusal("map", size_bytes, purpose);
  begin_ = static_cast<std::byte*>(mapping);
  madvise(mapping, size_bytes, MADV_HUGEPAGE);
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), size_bytes_(other.size_bytes_) {}

SharedMapping::~SharedMapping() {
  if (begin_ != nullptr) munmap(begin_, size_bytes_);
}

// Allocates pages through the mapping, which asks for huge pages. fallocate() on the descriptor
// would allocate small pages; it serves kernels before 5.14, which lack MADV_POPULATE_WRITE.
void reserve_pages(int file, const SharedMapping& mapping, std::size_t begin, std::size_t size,
                   std::string_view purpose) {
  int result = 0;
  do {
    result = madvise(mapping.data() + begin, size, MADV_POPULATE_WRITE);
    if (result != 0 && errno == EINVAL) {
      result = fallocate(file, 0, static_cast<off_t>(begin), static_cast<off_t>(size));
    }
  } while (result != 0 && errno == EINTR);
  if (result != 0) report_refusal("reserve", size, purpose);
}

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds timeout) noexcept {
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  const timespec time{.tv_sec = timeout.count() / kPerSecond,
                      .tv_nsec = timeout.count() % kPerSecond};
  call_futex(word, FUTEX_WAIT, expected, &time);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  call_futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace syncopate
