// The vector type and the kernel functions of one instruction set, in its namespace. Included only
// by the .cc files of this folder that are compiled once per instruction set. cpu_kernels.h
// documents the functions.
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

void pixels_to_planar(const std::uint8_t* x, float* y, std::int64_t n, std::int64_t pixels,
                      int channels, const float* scale, const float* shift);
void pixels_to_interleaved(const std::uint8_t* x, float* y, std::int64_t n, std::int64_t pixels,
                           int channels, const float* scale, const float* shift);
void batch_norm_statistics(const float* x, BlockedShape shape, double* sums);
void batch_norm_apply(const float* x, const float* added, float* y, BlockedShape shape,
                      const float* scale, const float* shift, bool relu);
void batch_norm_backward_sums(const BatchNormBackward& args, BlockedShape shape, double* sums);
void batch_norm_backward_apply(const BatchNormInputGradient& args, BlockedShape shape);
void layer_norm(const float* x, float* y, const ChannelRows& shape, const float* weight,
                const float* bias, float epsilon, float* mean, float* inverse_deviation);
void layer_norm_backward(const LayerNormBackward& args, const ChannelRows& shape);
void dropout_mask(std::uint64_t key, std::uint64_t stream, std::uint32_t threshold,
                  std::uint8_t* mask, std::int64_t count);
void dropout(const float* x, const std::uint8_t* mask, float scale, float* y,
             const ChannelRows& shape);
void relu(const float* x, float* y, std::int64_t count);
void relu_backward(const float* dy, const float* y, float* dx, std::int64_t count);
void add(const float* a, const float* b, float* y, std::int64_t count);
void multiply(const float* a, const float* b, float* y, std::int64_t count);
void multiply_channels(const float* x, const float* factor, float* y, BlockedShape shape,
                       std::int64_t factors);
void multiply_channels_gradient(const float* dy, const float* x, float* dfactor, BlockedShape shape,
                                std::int64_t factors);
void activate(const ActivationOp& op, const float* x, float* y, std::int64_t count);
void activate_backward(const ActivationOp& op, const float* x, const float* dy, float* dx,
                       std::int64_t count);
void softmax(const float* x, float* y, const ChannelRows& shape);
void softmax_backward(const float* y, const float* dy, float* dx, const ChannelRows& shape);
void upsample(const float* x, float* y, const UpsampleShape& shape);
void upsample_backward(const float* dy, float* dx, const UpsampleShape& shape);
void clear_padding(float* y, BlockedShape shape, std::int64_t channels);
void copy_channels(const float* x, std::int64_t x_blocks, std::int64_t x_first, float* y,
                   std::int64_t y_blocks, std::int64_t y_first, std::int64_t n, std::int64_t pixels,
                   std::int64_t count);
void average_pool(const float* x, float* y, const PoolShape& shape);
void average_pool_backward(const float* dy, float* dx, const PoolShape& shape);
void max_pool(const float* x, float* y, std::uint8_t* winner, const PoolShape& shape);
void max_pool_backward(const float* dy, const std::uint8_t* winner, float* dx,
                       const PoolShape& shape);
void global_average_pool(const float* x, float* y, BlockedShape shape, std::int64_t channels);
void global_average_pool_backward(const float* dy, float* dx, BlockedShape shape,
                                  std::int64_t channels);
void blocked_to_interleaved(const float* x, float* y, BlockedShape shape, std::int64_t channels);
void interleaved_to_blocked(const float* x, float* y, BlockedShape shape, std::int64_t channels);
void shortcut(const float* x, float* y, const PoolShape& shape, std::int64_t in_blocks);
void shortcut_backward(const float* dy, float* dx, const PoolShape& shape, std::int64_t in_blocks);
void add_bias(float* y, const float* bias, std::int64_t n, std::int64_t features, bool relu);
void bias_gradient(const float* dy, float* dbias, std::int64_t n, std::int64_t features);
void conv_pool_pack(const float* weight, float* packed, const ConvPoolShape& shape);
void conv_pool(const float* x, const float* packed, const float* bias, float* y,
               std::uint8_t* winner, const ConvPoolShape& shape);
void conv_pool_backward(const float* x, const float* dy, const std::uint8_t* winner, float* dweight,
                        float* dbias, float* scratch, const ConvPoolShape& shape);

}  // namespace syncopate::SYNCOPATE_ISA
