// The update rules as plain loops, compiled once per instruction set. Every operation is an exactly
// rounded f32 one and none is contracted, so any slice and any instruction set give the same bits.
// Called by the rules (sgd.cc, adam.cc), which fold a step's scalars in double precision first.
#pragma once

#include <cstdint>

#include "models/optim/update_constants.h"

namespace syncopate {

enum class Isa;

// All arrays have n elements and do not overlap.
struct OptimizerKernels {
  void (*sgd)(std::int64_t n, float* value, const float* gradient, const SgdConstants& constants);
  void (*momentum)(std::int64_t n, float* value, const float* gradient, float* buffer,
                   const SgdConstants& constants);
  void (*nesterov)(std::int64_t n, float* value, const float* gradient, float* buffer,
                   const SgdConstants& constants);
  void (*adam)(std::int64_t n, float* value, const float* gradient, float* exp_avg,
               float* exp_avg_sq, const AdamConstants& constants);
};

namespace v2 {
extern const OptimizerKernels kOptimizerKernels;
}
namespace v3 {
extern const OptimizerKernels kOptimizerKernels;
}
namespace v4 {
extern const OptimizerKernels kOptimizerKernels;
}

// The machine must support `isa`.
const OptimizerKernels& optimizer_kernels(Isa isa) noexcept;

}  // namespace syncopate
