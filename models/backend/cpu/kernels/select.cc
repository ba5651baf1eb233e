// Selects the kernel table of an instruction set. This file is compiled once, for the baseline.
#include "models/backend/cpu/kernels/kernels.h"
#include "models/base/isa.h"

namespace syncopate {

namespace v2 {
extern const CpuKernels kCpuKernels;
}
namespace v3 {
extern const CpuKernels kCpuKernels;
}
namespace v4 {
extern const CpuKernels kCpuKernels;
}

const CpuKernels& cpu_kernels(Isa isa) noexcept {
  switch (isa) {
    case Isa::kV4:
      return v4::kCpuKernels;
    case Isa::kV3:
      return v3::kCpuKernels;
    case Isa::kV2:
      break;
  }
  return v2::kCpuKernels;
}

}  // namespace syncopate
