// Records and files of tests of TFRecord.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/worker/input/packed_files.h"
#include "worker/input/record/example.h"
#include "worker/input/record/record_file.h"

namespace syncopate {

// Returns the bytes of a text of hexadecimal digits; blanks are left out.
inline Bytes from_hex(std::string_view text) {
  Bytes bytes;
  std::string digits;
  for (const char letter : text) {
    if (letter == ' ') continue;
    digits += letter;
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

inline Bytes as_u8(std::span<const std::byte> bytes) {
  Bytes result;
  for (const std::byte byte : bytes) result.push_back(static_cast<std::uint8_t>(byte));
  return result;
}

// Returns the file that holds these records.
inline Bytes record_bytes(const std::vector<Bytes>& records) {
  std::vector<std::byte> file;
  for (const Bytes& record : records) append_record(std::as_bytes(std::span(record)), file);
  return as_u8(file);
}

// Returns a record with an image and a class.
inline Bytes labelled_record(const Bytes& image, std::int64_t label,
                             const std::string& image_feature = "image",
                             const std::string& label_feature = "label") {
  const std::vector<WrittenFeature> features = {
      {.name = image_feature, .bytes = std::as_bytes(std::span(image))},
      {.name = label_feature, .integer = label}};
  return as_u8(serialize_example(features));
}

// Calls `check` with each beginning of `bytes` that is shorter, and with each copy in which one bit
// differs.
template <typename Check>
void for_each_damage(const Bytes& bytes, const Check& check) {
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    check(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    check(damaged);
  }
}

}  // namespace syncopate
