// One block of channels as a vector, whatever the instruction set: the compiler splits it where
// registers are narrower. For kernels/*.cc only, which are compiled once per instruction set.
#pragma once

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
using ByteVec = std::uint8_t __attribute__((vector_size(kBlock), aligned(1), may_alias));

static inline Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
static inline void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
static inline Vec splat(float value) { return Vec{} + value; }
// Keeps NaN: a broken network must not look healthy.
static inline Vec positive_part(Vec v) { return v < 0.0F ? Vec{} : v; }

static inline IntVec load_bytes(const std::uint8_t* p) {
  return __builtin_convertvector(*reinterpret_cast<const ByteVec*>(p), IntVec);
}
static inline void store_bytes(std::uint8_t* p, IntVec v) {
  *reinterpret_cast<ByteVec*>(p) = __builtin_convertvector(v, ByteVec);
}

}  // namespace syncopate::SYNCOPATE_ISA
