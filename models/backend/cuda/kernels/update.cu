// Applies an optimizer's update rule to a whole arena in one kernel, which also writes the weights
// of the next forward pass. The kernel is compiled without contraction and with denormals flushed
// to zero, as the rules on the CPU are.
#include <cmath>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

__device__ float updated(const UpdateConstants& constants, float value, float gradient,
                         float* slot0, float* slot1) {
  if (constants.rule == UpdateRule::kAdam) {
    const AdamConstants& c = constants.adam;
    const float g = gradient + c.weight_decay * value;
    const float m = c.beta1 * *slot0 + c.one_minus_beta1 * g;
    const float v = c.beta2 * *slot1 + c.one_minus_beta2 * (g * g);
    *slot0 = m;
    *slot1 = v;
    const float denominator = sqrtf(v) * c.denominator_scale + c.epsilon;
    return c.value_scale * value - c.step_size * (m / denominator);
  }
  const SgdConstants& c = constants.sgd;
  const float g = gradient + c.weight_decay * value;
  if (constants.rule == UpdateRule::kSgd) return value - c.learning_rate * g;
  const float buffer = c.momentum * *slot0 + g;
  *slot0 = buffer;
  if (constants.rule == UpdateRule::kMomentum) return value - c.learning_rate * buffer;
  return value - c.learning_rate * (g + c.momentum * buffer);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    update_kernel(UpdateConstants with_decay, UpdateConstants without_decay, UpdateArrays arrays,
                  T* weights, std::int64_t count) {
  const bool skips = arrays.scale != nullptr && arrays.scale->found_non_finite != 0;
  if (skips && arrays.average == nullptr) return;
  // The loss scale is a power of two, so the product is exactly the gradient of the unscaled loss.
  const float unscale = arrays.scale == nullptr ? 1.0F : 1.0F / arrays.scale->scale;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    float slot0 = arrays.slots[0] == nullptr ? 0.0F : arrays.slots[0][i];
    float slot1 = arrays.slots[1] == nullptr ? 0.0F : arrays.slots[1][i];
    const float gradient = arrays.gradients[i] * unscale;
    const float before = arrays.values[i];
    float value = before;
    if (!skips) {
      // Two calls, because a reference to one of two kernel parameters would make each thread copy
      // both into local memory.
      value = arrays.decays[i / kDecayBlock] != 0
                  ? updated(with_decay, before, gradient, &slot0, &slot1)
                  : updated(without_decay, before, gradient, &slot0, &slot1);
    }
    if (arrays.average != nullptr) {
      const float average = arrays.average[i];
      arrays.average[i] = average + with_decay.average_rate * (value - average);
    }
    if (skips) continue;
    arrays.values[i] = value;
    if (arrays.slots[0] != nullptr) arrays.slots[0][i] = slot0;
    if (arrays.slots[1] != nullptr) arrays.slots[1][i] = slot1;
    if (weights != nullptr) weights[i] = from_float<T>(value);
  }
}

}  // namespace

template <typename T>
void update(const UpdateConstants& with_decay, const UpdateConstants& without_decay,
            const UpdateArrays& arrays, T* weights, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  launch({"update", blocks_for(count), kThreads, stream}, update_kernel<T>, with_decay,
         without_decay, arrays, weights, count);
}

template void update(const UpdateConstants&, const UpdateConstants&, const UpdateArrays&, float*,
                     std::int64_t, cudaStream_t);
template void update(const UpdateConstants&, const UpdateConstants&, const UpdateArrays&,
                     __nv_bfloat16*, std::int64_t, cudaStream_t);
template void update(const UpdateConstants&, const UpdateConstants&, const UpdateArrays&, __half*,
                     std::int64_t, cudaStream_t);

}  // namespace syncopate::cuda
