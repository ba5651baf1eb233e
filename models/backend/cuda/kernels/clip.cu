// Clips the gradients of a step by their global norm, without the host.
#include <cmath>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/row_threads.h"

namespace syncopate::cuda {
namespace {

constexpr double kEpsilon = 1e-6;  // as on the CPU, models/optim/gradient_clip.cc

__global__ void __launch_bounds__(kThreads)
    squares_kernel(const float* gradients, std::int64_t count, double* squares) {
  __shared__ double sums[kThreads];
  double own = 0.0;
  for_indices_of_thread(count, [&](std::int64_t i) {
    const double gradient = static_cast<double>(gradients[i]);
    own += gradient * gradient;
  });
  const double sum = sum_of_row<kThreads>(own, sums);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    clip_kernel(float* gradients, std::int64_t count, double max_norm, const LossScale* scale,
                const double* squares) {
  __shared__ double sums[kThreads];
  double own = 0.0;
  for (int b = static_cast<int>(threadIdx.x); b < kSquaresBlocks; b += kThreads) own += squares[b];
  const double sum = sum_of_row<kThreads>(own, sums);
  const double unscale = scale == nullptr ? 1.0 : 1.0 / static_cast<double>(scale->scale);
  const double factor = max_norm / (sqrt(sum) * unscale + kEpsilon);
  if (factor >= 1.0) return;
  const auto multiplier = static_cast<float>(factor);
  for_indices_of_thread(count, [&](std::int64_t i) { gradients[i] *= multiplier; });
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
