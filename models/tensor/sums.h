// The additions of every all-reduce and of the shard, and conversions between f32 and bf16. Order
// and rounding are fixed, so the bits of a sum do not depend on the instruction set or on how the
// array is sliced. Denormal f32 sums become zero (models/base/denormals.h), whatever mode the
// calling thread has set. A bf16 element is a u16 word. To add two bf16 elements, both are
// converted to f32 and the sum is rounded to the nearest bf16, ties to even; NaN stays NaN.
#pragma once

#include <cstdint>

namespace syncopate {

enum class Isa;

// The gradients of n replicas are added in an order that depends only on n and on an element's
// index in the arena. The shard and every collective that promises equal bits use this order, so
// they produce the same bits for all buckets, transports and timings. The arena is divided into
// blocks of kBlockElements elements. The sum of block b starts at rank (b + 1) mod n and continues
// upwards, with rank 0 after rank n - 1.
inline constexpr std::int64_t kBlockElements = 16384;

// Returns the rank at which the sum of arena element `index` over n ranks starts. A negative index
// lies before the start of the arena, in block -1 or a lower block; the sum of block -1 starts at
// rank 0.
constexpr int first_addend(std::int64_t index, int n) noexcept {
  const std::int64_t block =
      index >= 0 ? index / kBlockElements : -((-index + kBlockElements - 1) / kBlockElements);
  return static_cast<int>(((block + 1) % n + n) % n);
}

// The addition and conversion functions. The arrays of a call must not overlap and need no
// alignment.
struct SumKernels {
  // For each element e in [begin, begin + count): adds element e of all n ranks, in the order
  // ranks[first], ranks[first + 1], ... with rank 0 after rank n - 1, and stores the sum in element
  // e of every rank.
  void (*sum_to_all_f32)(float* const* ranks, int n, int first, std::int64_t begin,
                         std::int64_t count);
  void (*sum_to_all_bf16)(std::uint16_t* const* ranks, int n, int first, std::int64_t begin,
                          std::int64_t count);
  // Add one array to another, element by element: into = into + addend.
  void (*add_f32)(float* into, const float* addend, std::int64_t count);
  void (*add_bf16)(std::uint16_t* into, const std::uint16_t* addend, std::int64_t count);
  // into = factor * from, element by element. `into` and `from` may be the same array.
  void (*scale_f32)(float* into, const float* from, float factor, std::int64_t count);
  // to_bf16() converts f32 to the nearest bf16, and from_bf16() converts back. words: [count] bf16
  // at any address.
  void (*to_bf16)(void* words, const float* from, std::int64_t count);
  void (*from_bf16)(float* into, const void* words, std::int64_t count);
  // Converts from + error to bf16 and sets `error` to the rounding error, that is from + error
  // minus the bf16 value. If the value is infinite or NaN, `error` becomes 0, since it would make
  // every later sum NaN.
  void (*to_bf16_with_error)(void* words, const float* from, float* error, std::int64_t count);
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

// Returns the functions compiled for `isa`, which this machine must support.
const SumKernels& sum_kernels(Isa isa) noexcept;

}  // namespace syncopate
