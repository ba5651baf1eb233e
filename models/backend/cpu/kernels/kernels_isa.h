// Defines the vector type of one instruction set and functions on vectors, in the namespace of this
// instruction set. Included only by the .cc files of this folder that are compiled once per
// instruction set. cpu_kernels.h documents the kernels in these files.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "models/backend/cpu/kernels/cpu_kernels.h"

namespace syncopate::SYNCOPATE_ISA {

#if defined(__AVX512F__)
inline constexpr int kBlock = 16;
#else
inline constexpr int kBlock = 8;
#endif

// One block of channels as a vector. The vector may be unaligned and may alias float. If registers
// are narrower, the compiler splits the vector.
using Vec = float __attribute__((vector_size(kBlock * 4), aligned(4), may_alias));
using IntVec = std::int32_t __attribute__((vector_size(kBlock * 4), aligned(4), may_alias));
static inline Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
static inline void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
// Returns max(v, 0) but keeps NaN, so that a diverged network is not hidden.
static inline Vec positive_part(Vec v) { return v < 0.0F ? Vec{} : v; }

// Load and store the first `left` elements of a block. The other elements of a loaded block are
// zero.
static inline Vec load_part(const float* p, std::int64_t left) {
  if (left >= kBlock) return load(p);
  Vec v = {};
  for (int i = 0; i < left; ++i) v[i] = p[i];
  return v;
}
static inline void store_part(float* p, Vec v, std::int64_t left) {
  if (left >= kBlock) return store(p, v);
  for (int i = 0; i < left; ++i) p[i] = v[i];
}

// Load and store a block of channels that has one byte per channel in memory. The AVX-512 version
// uses intrinsics, because GCC 12 converts such a vector element by element.
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

// Each function sets the members of `table` that point to the kernels of one .cc file.
void fill_activations(CpuKernels& table);
void fill_batch_norm(CpuKernels& table);
void fill_conv_pool(CpuKernels& table);
void fill_dropout(CpuKernels& table);
void fill_elementwise(CpuKernels& table);
void fill_layer_norm(CpuKernels& table);
void fill_pooling(CpuKernels& table);
void fill_softmax(CpuKernels& table);
void fill_upsampling(CpuKernels& table);

}  // namespace syncopate::SYNCOPATE_ISA
