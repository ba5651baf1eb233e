// Memory shared between processes: an anonymous file (memfd), its mapping, and waiting for a change
// of a word in it. Other processes receive the file's descriptor and map the file, too. The kernel
// frees the memory when the last process that maps it exits or is killed. The size limit of
// /dev/shm does not apply.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Rounds a size up to a multiple of the size of a huge page (2 MiB), which large mappings use.
std::size_t whole_huge_pages(std::size_t size_bytes) noexcept;

// Creates a zeroed shared memory file and seals its size. Another process can therefore not
// truncate the file, which would kill the processes that map it. purpose: here and below, the name
// of the contents in error messages, such as "gradients". Throws OutOfMemoryError, FileError.
FileDescriptor make_shared_memory_file(std::size_t size_bytes, std::string_view purpose);

// Returns whether the kernel refuses every attempt to make the shared memory file smaller.
bool is_sealed_against_shrinking(int file) noexcept;

// A writable mapping of a whole shared memory file. Writes are seen by every process that maps the
// file. The mapping stays valid when the descriptor is closed and when all other processes end.
class SharedMapping {
 public:
  // Maps the whole file. file: the descriptor of the shared memory file. size_bytes: the size of
  // the file. purpose: see make_shared_memory_file(). Throws OutOfMemoryError, FileError.
  SharedMapping(int file, std::size_t size_bytes, std::string_view purpose);
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&&) = delete;
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  ~SharedMapping();

  std::byte* data() const noexcept { return begin_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }

 private:
  std::byte* begin_;
  std::size_t size_bytes_;
};

// Allocates the pages of bytes [begin, begin + size) now, so that lack of memory is an error.
// Without this call, lack of memory would end the process with SIGBUS at the first write to a page.
// The pages are placed near the CPU of the first process that reserves them. `file` is the
// descriptor of `mapping`. Throws OutOfMemoryError, FileError.
void reserve_pages(int file, const SharedMapping& mapping, std::size_t begin, std::size_t size,
                   std::string_view purpose);

// Sleeps until futex_wake_all() is called for the word, or `timeout` has passed. Returns
// immediately if the word does not hold `expected`. The call may also return early, so the caller
// checks the word again. The word may be changed by other threads or by other processes that map
// its page (std::atomic::wait works inside one process only and has no timeout). Source: futex(2).
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds timeout) noexcept;

// Wakes every thread, of every process, that sleeps on the word in shared memory.
void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept;

}  // namespace syncopate
