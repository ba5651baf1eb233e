#include <immintrin.h>

#include "models/tensor/sums.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {

// Flushes denormals to zero inside each kernel. If the callers had to do so, one that forgot would
// compute other last bits. FlushDenormals is not used here: its inline functions, compiled for this
// instruction set, could be the copies that the linker keeps for the whole program. The loops of
// the kernels are not inlined, so that the compiler moves no addition out of the flushed region.
class Flush {
 public:
  Flush() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040U); }
  Flush(const Flush&) = delete;
  Flush& operator=(const Flush&) = delete;
  ~Flush() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};

#if defined(__AVX512F__)
constexpr int kVectorFloats = 16;
#elif defined(__AVX__)
constexpr int kVectorFloats = 8;
#else
constexpr int kVectorFloats = 4;
#endif
using Floats [[gnu::vector_size(kVectorFloats * sizeof(float))]] = float;

inline Floats load(const float* from) {
  Floats value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
inline void store(float* to, Floats value) { __builtin_memcpy(to, &value, sizeof value); }

inline int next(int rank, int n) { return rank + 1 == n ? 0 : rank + 1; }

// Prefetches the data 1 KiB ahead, because the hardware prefetcher stops at every 4 KiB page: saves
// a fifth of the time for arrays larger than the caches. A prefetch past the end has no effect.
inline void prefetch(const float* from) {
  constexpr int kFloatsAhead = 256;
  __builtin_prefetch(from + kFloatsAhead);
}

[[gnu::noinline]] void sum_two(float* __restrict a, float* __restrict b, std::int64_t count) {
  constexpr int kLineFloats = 16;
  std::int64_t i = 0;
  for (; i + kLineFloats <= count; i += kLineFloats) {
    prefetch(a + i);
    prefetch(b + i);
    for (int v = 0; v < kLineFloats; v += kVectorFloats) {
      const Floats sum = load(a + i + v) + load(b + i + v);
      store(a + i + v, sum);
      store(b + i + v, sum);
    }
  }
  for (; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

// Sums eight vectors at a time over all ranks; sums stay in registers from first to last rank.
[[gnu::noinline]] void sum_many(float* const* ranks, int n, int first, std::int64_t begin,
                                std::int64_t count) {
  constexpr int kColumns = 8;
  constexpr std::int64_t kStep = kColumns * kVectorFloats;
  const std::int64_t end = begin + count;
  std::int64_t i = begin;
  for (; i + kStep <= end; i += kStep) {
    Floats sum[kColumns];
    for (int c = 0; c < kColumns; ++c) sum[c] = load(ranks[first] + i + c * kVectorFloats);
    for (int rank = next(first, n); rank != first; rank = next(rank, n)) {
      for (int c = 0; c < kColumns; ++c) sum[c] += load(ranks[rank] + i + c * kVectorFloats);
    }
    for (int rank = 0; rank < n; ++rank) {
      for (int c = 0; c < kColumns; ++c) store(ranks[rank] + i + c * kVectorFloats, sum[c]);
    }
  }
  for (; i < end; ++i) {
    float sum = ranks[first][i];
    for (int rank = next(first, n); rank != first; rank = next(rank, n)) sum += ranks[rank][i];
    for (int rank = 0; rank < n; ++rank) ranks[rank][i] = sum;
  }
}

void sum_to_all_f32(float* const* ranks, int n, int first, std::int64_t begin, std::int64_t count) {
  const Flush flush;
  if (n == 1) return;
  if (n == 2) {
    sum_two(ranks[first] + begin, ranks[1 - first] + begin, count);
  } else {
    sum_many(ranks, n, first, begin, count);
  }
}

[[gnu::noinline]] void add_loop(float* __restrict into, const float* __restrict addend,
                                std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] += addend[i];
}

void add_f32(float* into, const float* addend, std::int64_t count) {
  const Flush flush;
  add_loop(into, addend, count);
}

inline float widen(std::uint16_t value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value) << 16;
  float result;
  __builtin_memcpy(&result, &bits, sizeof result);
  return result;
}

// Rounds an f32 to bf16, to nearest, ties to even. A NaN keeps its sign and becomes a quiet NaN,
// because rounding could carry its low bits into the exponent and turn it into an infinity.
inline std::uint16_t narrow(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40U;
  const bool nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<std::uint16_t>(nan ? quiet : rounded);
}

[[gnu::noinline]] void add_loop(std::uint16_t* __restrict into,
                                const std::uint16_t* __restrict addend, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] = narrow(widen(into[i]) + widen(addend[i]));
}

void add_bf16(std::uint16_t* into, const std::uint16_t* addend, std::int64_t count) {
  const Flush flush;
  add_loop(into, addend, count);
}

// Sums one piece of the ranks' arrays, small enough for the first-level cache, into the first rank
// and copies it to the others.
void sum_to_all_bf16(std::uint16_t* const* ranks, int n, int first, std::int64_t begin,
                     std::int64_t count) {
  constexpr std::int64_t kPiece = 1024;
  const Flush flush;
  const std::int64_t end = begin + count;
  for (std::int64_t i = begin; i < end; i += kPiece) {
    const std::int64_t length = end - i < kPiece ? end - i : kPiece;
    std::uint16_t* const sum = ranks[first] + i;
    for (int rank = next(first, n); rank != first; rank = next(rank, n)) {
      add_loop(sum, ranks[rank] + i, length);
    }
    for (int rank = next(first, n); rank != first; rank = next(rank, n)) {
      __builtin_memcpy(ranks[rank] + i, sum, static_cast<std::size_t>(length) * sizeof *sum);
    }
  }
}

void scale_f32(float* into, const float* from, float factor, std::int64_t count) {
  const Flush flush;
  for (std::int64_t i = 0; i < count; ++i) into[i] = factor * from[i];
}

inline std::uint16_t load_word(const void* words, std::int64_t index) {
  std::uint16_t word;
  __builtin_memcpy(&word, static_cast<const char*>(words) + index * 2, sizeof word);
  return word;
}
inline void store_word(void* words, std::int64_t index, std::uint16_t word) {
  __builtin_memcpy(static_cast<char*>(words) + index * 2, &word, sizeof word);
}

void to_bf16(void* __restrict words, const float* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) store_word(words, i, narrow(from[i]));
}

void from_bf16(float* __restrict into, const void* __restrict words, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] = widen(load_word(words, i));
}

[[gnu::noinline]] void error_loop(void* __restrict words, const float* __restrict from,
                                  float* __restrict error, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float wanted = from[i] + error[i];
    const std::uint16_t word = narrow(wanted);
    store_word(words, i, word);
    const float left = wanted - widen(word);
    std::uint32_t bits;
    __builtin_memcpy(&bits, &left, sizeof bits);
    error[i] = (bits & 0x7F800000U) == 0x7F800000U ? 0.0F : left;
  }
}

void to_bf16_with_error(void* words, const float* from, float* error, std::int64_t count) {
  const Flush flush;
  error_loop(words, from, error, count);
}

}  // namespace

const SumKernels kSumKernels = {sum_to_all_f32, sum_to_all_bf16, add_f32,   add_bf16,
                                scale_f32,      to_bf16,         from_bf16, to_bf16_with_error};

}  // namespace syncopate::SYNCOPATE_ISA
