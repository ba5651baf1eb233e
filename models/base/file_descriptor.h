// A file descriptor with one owner, which closes the descriptor, and reading and writing of whole
// blocks, which go on after a signal and after a part.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/base/unique_handle.h"

namespace syncopate {

struct FileDescriptorTraits {
  using Type = int;
  static Type none() noexcept { return -1; }
  static void close(Type descriptor) noexcept { ::close(descriptor); }
};
using FileDescriptor = UniqueHandle<FileDescriptorTraits>;

// Writes all bytes. Returns the number that was written; errno tells why there are fewer.
std::size_t write_all(const FileDescriptor& file, std::span<const std::byte> bytes) noexcept;

// Reads from a byte of the file on until `target` is full or the file ends. Returns the number of
// bytes that was read; errno tells why there are fewer, and is 0 at the end of the file.
std::size_t read_all_at(const FileDescriptor& file, std::uint64_t offset,
                        std::span<std::byte> target) noexcept;

}  // namespace syncopate
