// Reads a file from front to back, unpacking .gz and .zst on the way, so that no parser knows what
// is packed.
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

// One thread only.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills as much of `target` as there is; less only at the end of the data.
  // Throws FileError when the file cannot be read, or its packing is damaged or cut short.
  virtual std::size_t read(std::span<std::uint8_t> target) = 0;
};

// Unpacks by suffix: .gz, .zst, else plain. Throws FileError when the file cannot be opened.
std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& path);

// The next `size` bytes, or fewer at the end of the data. Memory grows with what was really read,
// so that a header's lie about the size costs nothing.
std::vector<std::uint8_t> read_up_to(ByteStream& stream, std::uint64_t size);

// The first of DIR/name + suffix ("", ".gz", ".zst") that exists. Throws FileError where one cannot
// be looked at, or is no file.
std::optional<std::filesystem::path> find_packed(const std::filesystem::path& dir,
                                                 const std::string& name);

}  // namespace syncopate
