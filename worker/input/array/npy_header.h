// The header of a .npy file, NumPy's file of one array. Used by NpyFile. Source:
// numpy.org/doc/stable/reference/generated/numpy.lib.format.html, format versions 1.0 to 3.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "models/tensor/tensor.h"

namespace syncopate {

// An array of numbers in little-endian, C order.
struct NpyHeader {
  std::string type;               // kind and size in bytes of an element: "u1", "i8", "f4", "b1"
  std::size_t item_bytes = 0;     // size of an element
  Shape shape;                    // empty for a single number
  std::uint64_t data_offset = 0;  // byte of the file at which the elements start
};

// The first bytes of a file that suffice to parse its header.
inline constexpr std::size_t kNpyStartBytes = 12 + 10000;

// Parses a header. start: the first kNpyStartBytes of the file, or the whole file if it is shorter.
// path: of the file, for messages. Throws FileError naming path and byte: no .npy file, a
// damaged header, elements that are no numbers or big-endian, or Fortran order; where NumPy can
// convert the array, the message has the line of Python that does.
NpyHeader parse_npy_header(std::span<const std::uint8_t> start, const std::string& path);

// Returns the bytes of all elements. Throws FileError unless the file of `file_bytes` bytes ends
// with the last element.
std::uint64_t check_npy_size(const NpyHeader& header, std::uint64_t file_bytes,
                             const std::string& path);

// Returns NumPy's name of an element type: "float64" for "f8".
std::string numpy_name(const std::string& type);

// Returns the line of Python that replaces a file's array `a` by `expression`.
std::string numpy_conversion(const std::string& path, const std::string& expression);

}  // namespace syncopate
