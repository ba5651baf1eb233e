// The update rules as plain loops, compiled once per instruction set. Every operation is an exactly
// rounded f32 one and none is contracted, so any slice and any instruction set give the same bits.
// Called by the rules (sgd.cc, adam.cc), which fold a step's scalars in double precision first.
#pragma once

#include <cstdint>

namespace syncopate {

enum class Isa;

struct SgdConstants {
  float learning_rate;
  float weight_decay;
  float momentum;  // unused by sgd
};

struct AdamConstants {
  float weight_decay;  // added to the gradient, times the value
  float value_scale;   // the value is multiplied by this first: 1 - learning rate * decoupled decay
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float step_size;          // learning rate / (1 - beta1^t)
  float denominator_scale;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
};

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
