// The workers' gradients of a stretch of the arena, decoded and added in the one order of
// additions.
#pragma once

#include <cstdint>
#include <span>

#include "models/tensor/sums.h"
#include "ps/shard/gradient_codec.h"

namespace syncopate::ps {

// Fits the first-level cache together with what an optimizer reads and writes beside it: the sum is
// used up while it is there and never goes to memory.
inline constexpr std::int64_t kSumChunk = 4096;
// A chunk has one first addend.
static_assert(kBlockElements % kSumChunk == 0);

// sum[i] = sum over workers of gradients[worker][offset + i]; element 0 is element `index` of the
// arena. The stretch crosses no multiple of kSumChunk of the arena. `scratch` as long as `sum`.
// Returns `sum`, or the gradient itself where there is one worker and nothing to decode: nothing is
// copied then. Threads: any, on sums of their own.
std::span<const float> sum_gradients(const SumKernels& kernels,
                                     std::span<const EncodedGradient> gradients,
                                     std::int64_t offset, std::int64_t index, std::span<float> sum,
                                     std::span<float> scratch);

}  // namespace syncopate::ps
