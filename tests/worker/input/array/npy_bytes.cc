#include "tests/worker/input/array/npy_bytes.h"

#include <fmt/format.h>

namespace syncopate {

std::vector<std::uint8_t> npy_file_with_text(std::string text,
                                             const std::vector<std::uint8_t>& elements,
                                             std::uint8_t version) {
  const std::size_t prefix = version == 1 ? 10 : 12;
  text.append(63 - (prefix + text.size()) % 64, ' ');  // the elements start at a multiple of 64
  text += '\n';
  std::vector<std::uint8_t> bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  for (std::size_t i = 0; i < prefix - 8; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(text.size() >> (8 * i)));
  }
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

std::vector<std::uint8_t> npy_bytes(std::string_view descr, std::string_view shape,
                                    const std::vector<std::uint8_t>& elements,
                                    std::uint8_t version) {
  return npy_file_with_text(
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape),
      elements, version);
}

}  // namespace syncopate
