// Dropout. The random numbers are the same as in models/base/random.h, drawn for a vector of
// counters at a time.
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {
// 32-bit words of Philox, one in each 64-bit element, so that products need no shuffles.
constexpr int kCounters = kBlock / 2;
using Words = std::uint64_t __attribute__((vector_size(kCounters * 8)));
using FourFlags = std::uint32_t
    __attribute__((vector_size(kCounters * 4), aligned(1), may_alias));  // a byte each
constexpr std::uint64_t kLow = 0xFFFFFFFF;
static_assert(kMaskSlack >= 4 * kCounters + kBlock, "the last vectors of a mask have room");

// Returns the 64-bit products of words with a 32-bit factor.
Words multiply_words(Words words, std::uint64_t factor) {
#if defined(__AVX512F__)
  return reinterpret_cast<Words>(_mm512_mul_epu32(
      reinterpret_cast<__m512i>(words), _mm512_set1_epi64(static_cast<long long>(factor))));
#elif defined(__AVX2__)
  return reinterpret_cast<Words>(_mm256_mul_epu32(
      reinterpret_cast<__m256i>(words), _mm256_set1_epi64x(static_cast<long long>(factor))));
#else
  return words * factor;
#endif
}

// Returns the byte 1 at position `byte` of an element where its word is at least the threshold.
Words flags(Words words, std::uint64_t threshold, int byte) {
  return (reinterpret_cast<Words>(words >= threshold) & 1) << (8 * byte);
}

// Source of the constants and rounds of Philox4x32-10: Salmon et al. 2011, table 2 and section 4.1.
void dropout_mask(std::uint64_t key, std::uint64_t stream, std::uint32_t threshold,
                  std::uint8_t* mask, std::int64_t count) {
  constexpr std::uint64_t kMultiply0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiply1 = 0xCD9E8D57U;
  constexpr std::uint64_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint64_t kWeyl1 = 0xBB67AE85U;
  Words counter = {};
  for (int i = 0; i < kCounters; ++i) counter[i] = static_cast<std::uint64_t>(i);
  for (std::int64_t i = 0; i < count; i += 4 * kCounters) {
    Words c0 = counter & kLow;
    Words c1 = counter >> 32;
    Words c2 = Words{} + (stream & kLow);
    Words c3 = Words{} + (stream >> 32);
    std::uint64_t k0 = key & kLow;
    std::uint64_t k1 = key >> 32;
    for (int round = 0; round < 10; ++round) {
      const Words product0 = multiply_words(c0, kMultiply0);
      const Words product1 = multiply_words(c2, kMultiply1);
      c0 = (product1 >> 32) ^ c1 ^ k0;
      c1 = product1 & kLow;
      c2 = (product0 >> 32) ^ c3 ^ k1;
      c3 = product0 & kLow;
      k0 = (k0 + kWeyl0) & kLow;
      k1 = (k1 + kWeyl1) & kLow;
    }
    const Words kept = flags(c0, threshold, 0) | flags(c1, threshold, 1) | flags(c2, threshold, 2) |
                       flags(c3, threshold, 3);
    *reinterpret_cast<FourFlags*>(mask + i) = __builtin_convertvector(kept, FourFlags);
    counter += static_cast<std::uint64_t>(kCounters);
  }
}

void dropout(const float* x, const std::uint8_t* mask, float scale, float* y,
             const ChannelRows& shape) {
  const std::int64_t blocks = (shape.channels + kBlock - 1) / kBlock;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t left = shape.is_blocked ? kBlock : shape.channels - b * kBlock;
      const std::int64_t first = shape.is_blocked ? (n * blocks + b) * shape.pixels * kBlock
                                                  : n * shape.channels + b * kBlock;
      for (std::int64_t p = 0; p < shape.pixels; ++p) {
        const std::uint8_t* row = mask + (n * shape.pixels + p) * shape.channels + b * kBlock;
        const Vec factor = __builtin_convertvector(load_bytes(row), Vec) * scale;
        const std::int64_t at = first + p * kBlock;
        store_part(y + at, load_part(x + at, left) * factor, left);
      }
    }
  }
}

}  // namespace

void fill_dropout(CpuKernels& table) {
  table.dropout_mask = dropout_mask;
  table.dropout = dropout;
}

}  // namespace syncopate::SYNCOPATE_ISA
