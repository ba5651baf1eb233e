// Reads a file sequentially and unpacks .gz and .zst, so that parsers need not know about packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace syncopate {

// A stream of unpacked bytes. One thread only.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Reads into `target`; returns fewer bytes only at the end of the data. Throws FileError when the
  // file cannot be read, or its packing is damaged or cut short.
  virtual std::size_t read(std::span<std::uint8_t> target) = 0;
};

enum class Packing : std::uint8_t { kNone, kGzip, kZstd };

// Opens a file and unpacks it by its suffix: .gz, .zst or plain. Throws FileError.
std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& path);
// Opens a file of any name. Throws FileError.
std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& path, Packing packing);

// Returns the next `size` bytes, or fewer at the end of the data. Memory grows with the bytes that
// are read, so a false size in a header allocates nothing.
std::vector<std::uint8_t> read_up_to(ByteStream& stream, std::uint64_t size);

// Returns the first of DIR/name + suffix ("", ".gz", ".zst") that exists. Throws FileError when a
// candidate cannot be examined or is not a file.
std::optional<std::filesystem::path> find_packed(const std::filesystem::path& dir,
                                                 const std::string& name);

}  // namespace syncopate
