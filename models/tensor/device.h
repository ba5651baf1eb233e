// Where memory lives and what its elements are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace syncopate {

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

enum class DType : std::uint8_t { kF32, kBf16, kF16, kI32, kU8 };

std::size_t size_bytes(DType dtype) noexcept;
std::string_view name(DType dtype) noexcept;  // "f32"
std::string to_string(Device device);         // "cpu", "cuda:1"

}  // namespace syncopate
