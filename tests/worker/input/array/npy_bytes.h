// Makes .npy files for tests, byte by byte as NumPy writes them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// Returns a file with this text of the header, padded as NumPy does, and these elements.
std::vector<std::uint8_t> npy_file_with_text(std::string text,
                                             const std::vector<std::uint8_t>& elements,
                                             std::uint8_t version = 1);

// Returns a file of an array in C order. descr: "<f4"; shape: "(2, 3)".
std::vector<std::uint8_t> npy_bytes(std::string_view descr, std::string_view shape,
                                    const std::vector<std::uint8_t>& elements,
                                    std::uint8_t version = 1);

// Returns the bytes of numbers on this little-endian machine.
template <typename Number>
std::vector<std::uint8_t> bytes_of(const std::vector<Number>& numbers) {
  std::vector<std::uint8_t> bytes(numbers.size() * sizeof(Number));
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

}  // namespace syncopate
