// The element types of the safetensors format, and their conversion to f32. Used by
// SafetensorsReader. Source: github.com/huggingface/safetensors, safetensors/src/tensor.rs, Dtype.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace syncopate {

struct ElementType {
  std::string_view name;  // the name in the header of a file, such as "BF16"
  std::uint64_t bits = 0;
  // Converts little-endian elements to f32. Wider types are rounded to nearest, infinities and NaN
  // are kept, and true becomes 1. Null if this program does not read the type.
  void (*to_f32)(std::span<const std::byte> elements, std::span<float> values) = nullptr;
};

// The name of the only type that this program writes.
inline constexpr std::string_view kF32Name = "F32";

// Returns the type with this name; null if the format has no such type.
const ElementType* find_element_type(std::string_view name) noexcept;

// Converts an IEEE 754 binary16 number, which is given as its bits, to f32.
float half_to_float(std::uint16_t half) noexcept;

}  // namespace syncopate
