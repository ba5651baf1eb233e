// One block of channels as a vector, whatever the instruction set: the compiler splits it where
// registers are narrower. For kernels/*.cc only, which are compiled once per instruction set.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace syncopate::SYNCOPATE_ISA {

#if defined(__AVX512F__)
inline constexpr int kBlock = 16;
#else
inline constexpr int kBlock = 8;
#endif

// Unaligned and allowed to alias float.
using Vec = float __attribute__((vector_size(kBlock * 4), aligned(4), may_alias));
using IntVec = std::int32_t __attribute__((vector_size(kBlock * 4), aligned(4), may_alias));
static inline Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
static inline void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
// Keeps NaN: a broken network must not look healthy.
static inline Vec positive_part(Vec v) { return v < 0.0F ? Vec{} : v; }

// One byte for each channel. By intrinsics: GCC 12 takes the general conversion apart, element by
// element.
#if defined(__AVX512F__)
static inline IntVec load_bytes(const std::uint8_t* p) {
  return reinterpret_cast<IntVec>(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
static inline void store_bytes(std::uint8_t* p, IntVec v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(v)));
}
#else
static inline IntVec load_bytes(const std::uint8_t* p) {
  IntVec v;
  for (int i = 0; i < kBlock; ++i) v[i] = p[i];
  return v;
}
static inline void store_bytes(std::uint8_t* p, IntVec v) {
  for (int i = 0; i < kBlock; ++i) p[i] = static_cast<std::uint8_t>(v[i]);
}
#endif

}  // namespace syncopate::SYNCOPATE_ISA
