// The element types of the safetensors format, and their conversion to f32. Used by
// SafetensorsReader. Source: github.com/huggingface/safetensors, safetensors/src/tensor.rs, Dtype.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace syncopate {

struct ElementType {
  std::string_view name;  // as in the header of a file, such as "BF16"
  std::uint64_t bits = 0;
  // Converts little-endian elements to f32: wider types are rounded to nearest, infinities and NaN
  // stay what they are, and true is 1. Null: this program does not read the type.
  void (*to_f32)(std::span<const std::byte> elements, std::span<float> values) = nullptr;
};

// The type that this program writes.
inline constexpr std::string_view kF32Name = "F32";

// Returns the type of this name; null for a name that the format does not have.
const ElementType* find_element_type(std::string_view name) noexcept;

// Returns the f32 of the same value as an IEEE 754 binary16 number, given as its bits.
float half_to_float(std::uint16_t half) noexcept;

}  // namespace syncopate
