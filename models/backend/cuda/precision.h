// Maps a precision to the C++ type that stores the values of a program.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "models/backend/backend.h"

namespace syncopate::cuda {

// Calls make.operator()<T>() with the C++ type of the precision.
template <typename Make>
auto with_type(Precision precision, const Make& make) {
  switch (precision) {
    case Precision::kBf16:
      return make.template operator()<__nv_bfloat16>();
    case Precision::kF16:
      return make.template operator()<__half>();
    case Precision::kF32:
      break;
  }
  return make.template operator()<float>();
}

constexpr std::size_t element_bytes(Precision precision) {
  return precision == Precision::kF32 ? sizeof(float) : sizeof(std::uint16_t);
}

}  // namespace syncopate::cuda
