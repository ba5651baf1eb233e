// The update rules as plain loops, compiled once per instruction set, and the constants of one
// step. All operations are exactly rounded f32 operations, and none are contracted to fused
// multiply-adds, so the bits do not depend on the slicing or the instruction set. optimizer.cc
// computes the constants in double precision and calls the loops. CUDA kernels use the same
// constants.
#pragma once

#include <cstdint>

namespace syncopate {

enum class Isa;

struct SgdConstants {
  float learning_rate;
  float weight_decay;
  float momentum;  // unused by plain sgd
};

struct AdamConstants {
  float weight_decay;  // weight_decay * value is added to the gradient
  float value_scale;   // the value is first multiplied by this: 1 - learning rate * decoupled decay
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float step_size;          // learning rate / (1 - beta1^t)
  float denominator_scale;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
};

enum class UpdateRule : std::uint8_t { kSgd, kMomentum, kNesterov, kAdam };

// The constants of one update by an optimizer's rule. A device that evaluates the formulas of
// optimizer_kernels.cc with exactly rounded f32 operations, without contraction and with denormals
// flushed to zero, produces the same bits as the kernels.
struct UpdateConstants {
  UpdateRule rule = UpdateRule::kSgd;
  SgdConstants sgd{};    // for kSgd, kMomentum and kNesterov
  AdamConstants adam{};  // for kAdam
  // After the update, average += average_rate * (value - average). 0: there is no average.
  float average_rate = 0.0F;
};

// The optimizers' loops. All arrays have n elements and do not overlap.
struct OptimizerKernels {
  void (*sgd)(std::int64_t n, float* value, const float* gradient, const SgdConstants& constants);
  void (*momentum)(std::int64_t n, float* value, const float* gradient, float* buffer,
                   const SgdConstants& constants);
  void (*nesterov)(std::int64_t n, float* value, const float* gradient, float* buffer,
                   const SgdConstants& constants);
  void (*adam)(std::int64_t n, float* value, const float* gradient, float* exp_avg,
               float* exp_avg_sq, const AdamConstants& constants);
  // out = weight * (start - now), the displacement of local updates (outer_rule.h)
  void (*displacement)(std::int64_t n, float* out, const float* start, const float* now,
                       float weight);
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

// Returns the update rules compiled for `isa`, which this machine must support.
const OptimizerKernels& optimizer_kernels(Isa isa) noexcept;

}  // namespace syncopate
