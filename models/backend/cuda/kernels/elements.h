// Applies an operation to each element of a block of memory, in packs of 16 bytes.
#pragma once

#include <cstdint>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {

// The kernel of element-wise operations. Operation provides at<kWidth>(first element).
template <int kWidth, typename Operation>
__global__ void __launch_bounds__(kThreads)
    elementwise_kernel(Operation operation, std::int64_t count) {
  const std::int64_t packs = count / kWidth;
  for_indices_of_thread(packs,
                        [&](std::int64_t pack) { operation.template at<kWidth>(pack * kWidth); });
  // The elements after the last whole pack are fewer than the threads of a block: one per thread.
  const std::int64_t last =
      packs * kWidth + static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (kWidth > 1 && last < count) operation.template at<1>(last);
}

// Applies an operation to all elements. Wide is the largest of the types that the operation moves.
template <typename Wide, typename Operation>
void for_each_element(const char* name, const Operation& operation, std::int64_t count,
                      bool vectors, cudaStream_t stream) {
  if (count == 0) return;
  with_width<Wide>(vectors, [&](auto width) {
    launch({name, blocks_for((count + width - 1) / width), kThreads, stream},
           elementwise_kernel<width.value, Operation>, operation, count);
  });
}

}  // namespace syncopate::cuda
