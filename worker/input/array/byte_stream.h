// Reads a file sequentially and unpacks .gz and .zst files, so that parsers read packed and plain
// files in the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Reads the bytes of a file, and unpacks them if the file is packed. One thread only.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Reads into `target` and returns the number of bytes, which is below target.size() only at the
  // end of the data. Throws FileError if the file cannot be read, or the packed data are damaged or
  // cut short.
  virtual std::size_t read(std::span<std::uint8_t> target) = 0;
};

enum class Packing : std::uint8_t { kNone, kGzip, kZstd };

// Opens a file. The suffix of its name decides how it is unpacked: .gz, .zst or not at all. Throws
// FileError.
std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& path);
// Opens a file that has the given packing and any name. Throws FileError.
std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& path, Packing packing);

// Returns the next `size` bytes, or fewer at the end of the data. Memory is allocated as bytes are
// read, so that a wrong size in a header does not allocate memory.
std::vector<std::uint8_t> read_up_to(ByteStream& stream, std::uint64_t size);

// Reads from a byte of an open file on; returns fewer bytes than asked for only at its end. path:
// for messages. Throws FileError that names path and byte.
std::size_t read_up_to_end(const FileDescriptor& file, const std::string& path,
                           std::uint64_t offset, std::span<std::byte> target);

// Returns the first existing file of DIR/NAME, DIR/NAME.gz and DIR/NAME.zst; nullopt if none
// exists. Throws FileError if a path cannot be examined or is not a file.
std::optional<std::filesystem::path> find_packed(const std::filesystem::path& dir,
                                                 const std::string& name);

}  // namespace syncopate
