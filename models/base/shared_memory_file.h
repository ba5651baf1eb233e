// Memory as a file without a name (a memfd): processes that are handed its descriptor map the same
// pages. Nothing is left after a kill, and no limit of /dev/shm holds.
#pragma once

#include <cstddef>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Up to whole huge pages, which large mappings ask for where the system gives them.
std::size_t whole_huge_pages(std::size_t size_bytes) noexcept;

// Zeroed, sealed: nobody can ever change its size, hence nobody who maps it dies of another one's
// ftruncate. `purpose`, here and below: what it is to hold, for messages ("gradients").
// Throws OutOfMemoryError, FileError.
FileDescriptor make_shared_memory_file(std::size_t size_bytes, std::string_view purpose);

// Whether the file is one whose size nobody can make smaller.
bool is_sealed_against_shrinking(int file) noexcept;

// A window on a whole file of shared memory: what is written there, all who map the file see. It
// stays when the descriptor is closed and when all others have ended.
class SharedMapping {
 public:
  // size_bytes: of the file. Throws OutOfMemoryError, FileError.
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

// Pages that are missing when they are first written end the process with SIGBUS: asked for now,
// they are a line that can be read. They lie near the CPUs of the first one who asks.
// file: the one that is mapped; begin, size: bytes. Throws OutOfMemoryError, FileError.
void reserve_pages(int file, const SharedMapping& mapping, std::size_t begin, std::size_t size,
                   std::string_view purpose);

}  // namespace syncopate
