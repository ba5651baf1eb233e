// Applies an operation to each element of a block of memory, in packs of 16 bytes.
#pragma once

#include <cstdint>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {

// The kernel that applies an element-wise Operation to `count` elements. Operation has the function
// at<kWidth>(first), which computes kWidth elements from the index `first` on.
template <int kWidth, typename Operation>
__global__ void __launch_bounds__(kThreads)
    elementwise_kernel(Operation operation, std::int64_t count) {
  const std::int64_t packs = count / kWidth;
  for_indices_of_thread(packs,
                        [&](std::int64_t pack) { operation.template at<kWidth>(pack * kWidth); });
  // After the last whole pack, fewer elements are left than a block has threads. Each is computed
  // by one thread.
  const std::int64_t last =
      packs * kWidth + static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (kWidth > 1 && last < count) operation.template at<1>(last);
}

// Applies `operation` to the elements 0 to count - 1. Wide: the largest of the element types that
// the operation reads or writes. vectors: whether a thread moves packs of 16 bytes of Wide;
// otherwise it moves single elements.
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
