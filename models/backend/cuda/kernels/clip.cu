// Clips the gradients of a step by their global norm, without the host.
#include <cmath>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"

namespace syncopate::cuda {
namespace {

constexpr double kEpsilon = 1e-6;  // as on the CPU, models/optim/gradient_clip.cc

// Adds the doubles of a block's threads in a fixed order; the sum is sums[0].
__device__ void add_up(double* sums, double own) {
  const int thread = static_cast<int>(threadIdx.x);
  sums[thread] = own;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads)
    squares_kernel(const float* gradients, std::int64_t count, double* squares) {
  __shared__ double sums[kThreads];
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  double own = 0.0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    const double gradient = static_cast<double>(gradients[i]);
    own += gradient * gradient;
  }
  add_up(sums, own);
  if (threadIdx.x == 0) squares[blockIdx.x] = sums[0];
}

__global__ void __launch_bounds__(kThreads)
    clip_kernel(float* gradients, std::int64_t count, double max_norm, const LossScale* scale,
                const double* squares) {
  __shared__ double sums[kThreads];
  double own = 0.0;
  for (int b = static_cast<int>(threadIdx.x); b < kSquaresBlocks; b += kThreads) own += squares[b];
  add_up(sums, own);
  const double unscale = scale == nullptr ? 1.0 : 1.0 / static_cast<double>(scale->scale);
  const double factor = max_norm / (sqrt(sums[0]) * unscale + kEpsilon);
  if (factor >= 1.0) return;
  const auto multiplier = static_cast<float>(factor);
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    gradients[i] *= multiplier;
  }
}

}  // namespace

void clip_gradients(float* gradients, std::int64_t count, double max_norm, const LossScale* scale,
                    double* squares, cudaStream_t stream) {
  if (count == 0) return;
  const dim3 blocks(kSquaresBlocks);
  launch({"squares", blocks, kThreads, stream}, squares_kernel, gradients, count, squares);
  launch({"clip", blocks, kThreads, stream}, clip_kernel, gradients, count, max_norm, scale,
         squares);
}

}  // namespace syncopate::cuda
