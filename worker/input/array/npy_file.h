// Reads rows of a .npy file by number. The file is not loaded as a whole, so it may be larger than
// memory. Pages that were read stay in the page cache, which all processes of a machine share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "models/base/file_descriptor.h"
#include "models/tensor/tensor.h"

namespace syncopate {

// The header of an array of little-endian numbers in C order.
struct NpyHeader {
  std::string type;               // kind and size in bytes of an element: "u1", "i8", "f4", "b1"
  std::size_t item_bytes = 0;     // size of an element
  Shape shape;                    // empty for a single number
  std::uint64_t data_offset = 0;  // byte of the file at which the elements start
};

// The number of bytes at the start of a file that suffice to parse its header.
inline constexpr std::size_t kNpyStartBytes = 12 + 10000;

// Parses a header. start: the first kNpyStartBytes of the file, or the whole file if it is shorter.
// path: the path of the file, for messages. Throws FileError naming path and byte if the file is
// not a .npy file, its header is damaged, its elements are not numbers or are big-endian, or it is
// in Fortran order. If NumPy can convert the array to a supported form, the message has the line of
// Python that converts it.
NpyHeader parse_npy_header(std::span<const std::uint8_t> start, const std::string& path);

// Returns the number of bytes of all elements. Throws FileError unless a file of `file_bytes` bytes
// ends with the last element.
std::uint64_t check_npy_size(const NpyHeader& header, std::uint64_t file_bytes,
                             const std::string& path);

// Returns NumPy's name for an element type, such as "float64" for "f8".
std::string numpy_name(const std::string& type);

// Returns a line of Python that loads the array `a` of a file and replaces it by `expression`.
std::string numpy_conversion(const std::string& path, const std::string& expression);

// Reads rows of one .npy file. Row i of the array is the part with the first index i. Thread-safe.
class NpyFile {
 public:
  // Opens a file and checks its header and size. Throws FileError, also if the array is a single
  // number without dimensions.
  explicit NpyFile(const std::filesystem::path& path);

  const std::string& path() const noexcept { return path_; }
  const NpyHeader& header() const noexcept { return header_; }
  std::int64_t num_rows() const noexcept { return header_.shape[0]; }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  // Returns the offset in the file, in bytes, at which a row starts.
  std::uint64_t offset_of(std::int64_t row) const noexcept {
    return header_.data_offset + static_cast<std::uint64_t>(row) * row_bytes_;
  }
  // Reads bytes from the start of a row until `target` is full; `target` may have the size of
  // several rows. Throws FileError naming path and byte if the file cannot be read or was cut short
  // after it was opened.
  void read(std::int64_t row, std::span<std::byte> target) const;

 private:
  std::string path_;
  FileDescriptor file_;
  NpyHeader header_;
  std::size_t row_bytes_ = 0;
};

}  // namespace syncopate
