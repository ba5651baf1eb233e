// Dropout: a thread draws the four numbers of one Philox counter and applies them to four elements
// of a sample. Forward and backward pass draw the same numbers, so no mask is stored.
#include <limits>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

constexpr int kWords = 4;  // of a counter

// Computes RandomStream(key, stream).block(index) of models/base/random.h. Source: Salmon et al.
// 2011, table 2 and section 4.1.
__device__ inline void philox(std::uint64_t key, std::uint64_t stream, std::uint64_t index,
                              std::uint32_t (&words)[kWords]) {
  constexpr std::uint64_t kMultiply0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiply1 = 0xCD9E8D57U;
  words[0] = static_cast<std::uint32_t>(index);
  words[1] = static_cast<std::uint32_t>(index >> 32);
  words[2] = static_cast<std::uint32_t>(stream);
  words[3] = static_cast<std::uint32_t>(stream >> 32);
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiply0 * words[0];
    const std::uint64_t product1 = kMultiply1 * words[2];
    words[0] = static_cast<std::uint32_t>(product1 >> 32) ^ words[1] ^ key0;
    words[1] = static_cast<std::uint32_t>(product1);
    words[2] = static_cast<std::uint32_t>(product0 >> 32) ^ words[3] ^ key1;
    words[3] = static_cast<std::uint32_t>(product0);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

template <bool kIsWhole, typename T>
__global__ void __launch_bounds__(kThreads)
    dropout_kernel(Dropout how, std::int64_t counters, const std::uint64_t* keys, const T* x,
                   T* y) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i < how.n * counters; i += step) {
    // A division of 64-bit integers costs several times one of 32 bits.
    const bool is_small = how.n * counters <= std::numeric_limits<int>::max();
    const std::int64_t sample =
        is_small ? static_cast<int>(i) / static_cast<int>(counters) : i / counters;
    const std::int64_t counter = i - sample * counters;
    std::uint32_t words[kWords];
    philox(keys[sample], how.stream, static_cast<std::uint64_t>(counter), words);
    const std::int64_t first = sample * how.elements + counter * kWords;
    const auto factor = [&](int word) { return words[word] >= how.threshold ? how.scale : 0.0F; };
    if constexpr (kIsWhole) {
      auto floats = load<kWords>(x + first);
      for (int word = 0; word < kWords; ++word) floats[word] *= factor(word);
      store(y + first, floats);
    } else {
      for (int word = 0; word < kWords && counter * kWords + word < how.elements; ++word) {
        y[first + word] = from_float<T>(to_float(x[first + word]) * factor(word));
      }
    }
  }
}

}  // namespace

template <typename T>
void dropout(const Dropout& how, const std::uint64_t* keys, const T* x, T* y, cudaStream_t stream) {
  const std::int64_t counters = (how.elements + kWords - 1) / kWords;
  if (how.n * counters == 0) return;
  with_flag(how.elements % kWords == 0 && aligned(x, y), [&](auto is_whole) {
    launch({"dropout", blocks_for(how.n * counters), kThreads, stream},
           dropout_kernel<is_whole.value, T>, how, counters, keys, x, y);
  });
}

// Instantiates the function for float, __nv_bfloat16 and __half.
template void dropout(const Dropout&, const std::uint64_t*, const float*, float*, cudaStream_t);
template void dropout(const Dropout&, const std::uint64_t*, const __nv_bfloat16*, __nv_bfloat16*,
                      cudaStream_t);
template void dropout(const Dropout&, const std::uint64_t*, const __half*, __half*, cudaStream_t);

}  // namespace syncopate::cuda
