// Sums gradients over replicas that share a GPU. The kernel reads every element once from each
// replica, adds them in the job's fixed order, and writes the sum to all. It is compiled with
// denormals flushed to zero, as the sums on the CPU are.
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/elements.h"
#include "models/backend/cuda/kernels/pack.h"
#include "models/tensor/sums.h"

namespace syncopate::cuda {
namespace {

struct SumReplicas {
  ReplicaSlices slices;
  std::int64_t begin;

  // A pack never spans two blocks of the summation order, because `begin` and the block size are
  // multiples of kWidth.
  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    const std::int64_t index = begin + first;
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
};

}  // namespace

void sum_replicas(const ReplicaSlices& slices, std::int64_t begin, std::int64_t count,
                  cudaStream_t stream) {
  constexpr std::int64_t kElements = kVectorBytes / static_cast<std::int64_t>(sizeof(float));
  bool vectors = begin % kElements == 0;
  for (int r = 0; r < slices.count; ++r) vectors = vectors && aligned(slices.arenas[r]);
  for_each_element<float>("replica_sum", SumReplicas{slices, begin}, count, vectors, stream);
}

}  // namespace syncopate::cuda
