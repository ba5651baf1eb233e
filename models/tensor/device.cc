#include "models/tensor/device.h"

namespace syncopate {

std::size_t size_bytes(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBf16:
    case DType::kF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

std::string_view name(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBf16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
  }
  return "?";
}

std::string to_string(Device device) {
  if (device.kind == DeviceKind::kCpu) return "cpu";
  return "cuda:" + std::to_string(device.index);
}

}  // namespace syncopate
