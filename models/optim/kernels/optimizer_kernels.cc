#include "models/optim/kernels/optimizer_kernels.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {

// Each loop copies the update rule's constants into a local. Behind a reference they could alias
// the arrays, and the compiler would read them again for every element.

void sgd(std::int64_t n, float* __restrict value, const float* __restrict gradient,
         const SgdConstants& constants) {
  const SgdConstants c = constants;
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] + c.weight_decay * value[i];
    value[i] -= c.learning_rate * g;
  }
}

void momentum(std::int64_t n, float* __restrict value, const float* __restrict gradient,
              float* __restrict buffer, const SgdConstants& constants) {
  const SgdConstants c = constants;
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] + c.weight_decay * value[i];
    buffer[i] = c.momentum * buffer[i] + g;
    value[i] -= c.learning_rate * buffer[i];
  }
}

void nesterov(std::int64_t n, float* __restrict value, const float* __restrict gradient,
              float* __restrict buffer, const SgdConstants& constants) {
  const SgdConstants c = constants;
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] + c.weight_decay * value[i];
    buffer[i] = c.momentum * buffer[i] + g;
    value[i] -= c.learning_rate * (g + c.momentum * buffer[i]);
  }
}

void adam(std::int64_t n, float* __restrict value, const float* __restrict gradient,
          float* __restrict exp_avg, float* __restrict exp_avg_sq, const AdamConstants& constants) {
  const AdamConstants c = constants;
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] + c.weight_decay * value[i];
    const float m = c.beta1 * exp_avg[i] + c.one_minus_beta1 * g;
    const float v = c.beta2 * exp_avg_sq[i] + c.one_minus_beta2 * (g * g);
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    const float denominator = __builtin_sqrtf(v) * c.denominator_scale + c.epsilon;
    value[i] = c.value_scale * value[i] - c.step_size * (m / denominator);
  }
}

void displacement(std::int64_t n, float* __restrict out, const float* __restrict start,
                  const float* __restrict now, float weight) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = weight * (start[i] - now[i]);
}

}  // namespace

const OptimizerKernels kOptimizerKernels = {sgd, momentum, nesterov, adam, displacement};

}  // namespace syncopate::SYNCOPATE_ISA
