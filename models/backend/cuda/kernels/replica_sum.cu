// Sums gradients over replicas that share a GPU. The kernel reads every element once from each
// replica, adds them in the job's fixed order, and writes the sum to all. It is compiled with
// denormals flushed to zero, as the sums on the CPU are.
#include <algorithm>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"
#include "models/tensor/sums.h"

namespace syncopate::cuda {
namespace {

// A pack never spans two blocks of the summation order, because `begin` and the block size are
// multiples of kWidth.
template <int kWidth>
__device__ void sum_pack(const ReplicaSlices& slices, std::int64_t index) {
  const int n = slices.count;
  int replica = static_cast<int>((index / kBlockElements + 1) % n);
  auto sum = load<kWidth>(slices.arenas[replica] + index);
  for (int k = 1; k < n; ++k) {
    if (++replica == n) replica = 0;
    const auto addend = load<kWidth>(slices.arenas[replica] + index);
    for (int i = 0; i < kWidth; ++i) sum[i] += addend[i];
  }
  for (int r = 0; r < n; ++r) store(slices.arenas[r] + index, sum);
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    replica_sum_kernel(ReplicaSlices slices, std::int64_t begin, std::int64_t count) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t packs = count / kWidth;
  for (std::int64_t pack = thread; pack < packs; pack += threads) {
    sum_pack<kWidth>(slices, begin + pack * kWidth);
  }
  // The elements after the last whole pack are fewer than the threads of a block: one per thread.
  const std::int64_t last = packs * kWidth + thread;
  if (kWidth > 1 && last < count) sum_pack<1>(slices, begin + last);
}

}  // namespace

void sum_replicas(const ReplicaSlices& slices, std::int64_t begin, std::int64_t count,
                  cudaStream_t stream) {
  if (count == 0) return;
  constexpr std::int64_t kElements = kVectorBytes / static_cast<std::int64_t>(sizeof(float));
  bool vectors = begin % kElements == 0;
  for (int r = 0; r < slices.count; ++r) vectors = vectors && aligned(slices.arenas[r]);
  with_width<float>(vectors, [&](auto width) {
    const std::int64_t packs = (count + width - 1) / width;
    const std::int64_t blocks =
        std::min<std::int64_t>((packs + kThreads - 1) / kThreads, kMostBlocks);
    launch({"replica_sum", dim3(static_cast<unsigned>(blocks)), kThreads, stream},
           replica_sum_kernel<width.value>, slices, begin, count);
  });
}

}  // namespace syncopate::cuda
