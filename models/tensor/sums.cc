#include "models/tensor/sums.h"

#include "models/base/isa.h"

namespace syncopate {

const SumKernels& sum_kernels(Isa isa) noexcept {
  switch (isa) {
    case Isa::kV3:
      return v3::kSumKernels;
    case Isa::kV4:
      return v4::kSumKernels;
    case Isa::kV2:
      break;
  }
  return v2::kSumKernels;
}

}  // namespace syncopate
