// Adapts the scale of the loss on the device: the kernels inspect the gradients and decide whether
// the gradients are used, so that no step needs the host.
#include <cfloat>
#include <cmath>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"

namespace syncopate::cuda {
namespace {

constexpr float kLargestScale = 0x1p126F;  // keeps 1 / scale a normal number

__global__ void __launch_bounds__(kThreads)
    find_non_finite_kernel(const float* gradients, std::int64_t count, LossScale* scale) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  bool found = false;
#pragma unroll 4
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    // `found` becomes true for a NaN gradient, too, as any comparison with NaN is false.
    found |= !(fabsf(gradients[i]) <= FLT_MAX);
  }
  // Several threads may write found_non_finite at once; the race is harmless, as all write 1.
  if (found) scale->found_non_finite = 1;
}

__global__ void __launch_bounds__(kThreads)
    unscale_kernel(const LossScale* scale, float* gradients, std::int64_t count) {
  const bool keeps = scale->found_non_finite == 0;
  const float factor = 1.0F / scale->scale;
  for_indices_of_thread(
      count, [&](std::int64_t i) { gradients[i] = keeps ? gradients[i] * factor : 0.0F; });
}

__global__ void adjust_scale_kernel(LossScale* scale, int growth_interval) {
  if (scale->found_non_finite != 0) {
    scale->found_non_finite = 0;
    scale->scale = fmaxf(scale->scale * 0.5F, 1.0F);
    scale->good_steps = 0;
    ++scale->skipped_steps;
  } else if (++scale->good_steps >= growth_interval) {
    if (scale->scale <= kLargestScale / 2.0F) scale->scale *= 2.0F;
    scale->good_steps = 0;
  }
}

}  // namespace

void find_non_finite(const float* gradients, std::int64_t count, LossScale* scale,
                     cudaStream_t stream) {
  if (count == 0) return;
  launch({"find_non_finite", blocks_for(count), kThreads, stream}, find_non_finite_kernel,
         gradients, count, scale);
}

void unscale(const LossScale* scale, float* gradients, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  launch({"unscale", blocks_for(count), kThreads, stream}, unscale_kernel, scale, gradients, count);
}

void adjust_scale(LossScale* scale, int growth_interval, cudaStream_t stream) {
  launch({"adjust_scale", dim3(1), 1, stream}, adjust_scale_kernel, scale, growth_interval);
}

}  // namespace syncopate::cuda
