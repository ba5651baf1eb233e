#include "worker/checkpoint/element_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace syncopate {
namespace {

// Converts each element, of type Stored, by the function `convert`. Elements may be unaligned.
template <typename Stored, typename Convert>
void convert_each(std::span<const std::byte> elements, std::span<float> values,
                  const Convert& convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored{};
    std::memcpy(&stored, elements.data() + i * sizeof stored, sizeof stored);
    values[i] = convert(stored);
  }
}

template <typename Stored>
void to_f32(std::span<const std::byte> elements, std::span<float> values) {
  convert_each<Stored>(elements, values, [](Stored stored) { return static_cast<float>(stored); });
}

void half_to_f32(std::span<const std::byte> elements, std::span<float> values) {
  convert_each<std::uint16_t>(elements, values, half_to_float);
}

void bfloat_to_f32(std::span<const std::byte> elements, std::span<float> values) {
  convert_each<std::uint16_t>(elements, values, [](std::uint16_t stored) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(stored) << 16);
  });
}

void bool_to_f32(std::span<const std::byte> elements, std::span<float> values) {
  convert_each<std::uint8_t>(elements, values,
                             [](std::uint8_t stored) { return stored == 0 ? 0.0F : 1.0F; });
}

constexpr std::array kTypes = {ElementType{"F64", 64, to_f32<double>},
                               ElementType{kF32Name, 32, to_f32<float>},
                               ElementType{"F16", 16, half_to_f32},
                               ElementType{"BF16", 16, bfloat_to_f32},
                               ElementType{"I64", 64, to_f32<std::int64_t>},
                               ElementType{"I32", 32, to_f32<std::int32_t>},
                               ElementType{"I16", 16, to_f32<std::int16_t>},
                               ElementType{"I8", 8, to_f32<std::int8_t>},
                               ElementType{"U64", 64, to_f32<std::uint64_t>},
                               ElementType{"U32", 32, to_f32<std::uint32_t>},
                               ElementType{"U16", 16, to_f32<std::uint16_t>},
                               ElementType{"U8", 8, to_f32<std::uint8_t>},
                               ElementType{"BOOL", 8, bool_to_f32},
                               ElementType{"C64", 64},
                               ElementType{"F8_E5M2", 8},
                               ElementType{"F8_E4M3", 8},
                               ElementType{"F8_E8M0", 8},
                               ElementType{"F8_E5M2FNUZ", 8},
                               ElementType{"F8_E4M3FNUZ", 8},
                               ElementType{"F6_E3M2", 6},
                               ElementType{"F6_E2M3", 6},
                               ElementType{"F4", 4}};

}  // namespace

const ElementType* find_element_type(std::string_view name) noexcept {
  const auto type = std::ranges::find(kTypes, name, &ElementType::name);
  return type == kTypes.end() ? nullptr : &*type;
}

// Source: IEEE 754-2008, table 3.5: 1 sign bit, 5 exponent bits with bias 15, 10 fraction bits.
float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {
    constexpr float kSmallest = 0x1p-24F;  // the smallest subnormal binary16 number
    const float value = static_cast<float>(fraction) * kSmallest;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  constexpr std::uint32_t kBiasDifference = 127 - 15;
  const std::uint32_t wide = exponent == 0x1FU ? 0xFFU : exponent + kBiasDifference;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

}  // namespace syncopate
