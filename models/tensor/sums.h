// The additions of every all-reduce and of the shard: one order, one rounding, the same bits on
// every instruction set and for every slice. f32 results that are too small for a normal exponent
// become zero (models/base/denormals.h), whatever the calling thread has set. bf16 elements are
// u16 words: two are widened, added in f32 and rounded to nearest even; NaN stays NaN.
#pragma once

#include <cstdint>

namespace syncopate {

enum class Isa;

// Each array of a call overlaps no other one. No alignment is asked for.
struct SumKernels {
  // For each element e in [begin, begin + count): s = ranks[first][e] + ranks[first + 1][e] + ...,
  // all n ranks in turn, from left to right; s is stored to all of them.
  void (*sum_to_all_f32)(float* const* ranks, int n, int first, std::int64_t begin,
                         std::int64_t count);
  void (*sum_to_all_bf16)(std::uint16_t* const* ranks, int n, int first, std::int64_t begin,
                          std::int64_t count);
  // into = into + addend
  void (*add_f32)(float* into, const float* addend, std::int64_t count);
  void (*add_bf16)(std::uint16_t* into, const std::uint16_t* addend, std::int64_t count);
};

namespace v2 {
extern const SumKernels kSumKernels;
}
namespace v3 {
extern const SumKernels kSumKernels;
}
namespace v4 {
extern const SumKernels kSumKernels;
}

// The machine must support `isa`.
const SumKernels& sum_kernels(Isa isa) noexcept;

}  // namespace syncopate
