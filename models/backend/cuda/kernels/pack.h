// Moves elements between device memory and registers, up to 16 bytes at once, and converts them to
// f32 for arithmetic.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector_types.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "models/base/errors.h"

namespace syncopate::cuda {

inline constexpr int kVectorBytes = 16;

// A pack: kWidth adjacent elements that one instruction moves, or two instructions if the pack has
// more than 16 bytes.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth < kVectorBytes ? sizeof(T) * kWidth : kVectorBytes) Pack {
  T values[kWidth];
};

template <int kWidth>
struct Floats {
  float values[kWidth];
  __host__ __device__ float& operator[](int i) { return values[i]; }
  __host__ __device__ float operator[](int i) const { return values[i]; }
};

__host__ __device__ inline float to_float(float value) { return value; }
__host__ __device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__host__ __device__ inline float to_float(__half value) { return __half2float(value); }
__host__ __device__ inline float to_float(std::uint8_t value) { return value; }
__host__ __device__ inline float to_float(std::uint16_t value) { return value; }

// Converts a float to T, rounding to nearest even.
template <typename T>
__host__ __device__ T from_float(float value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else {
    return value;
  }
}

template <typename T, int kWidth>
__device__ Floats<kWidth> to_floats(const Pack<T, kWidth>& pack) {
  Floats<kWidth> floats;
  for (int i = 0; i < kWidth; ++i) floats[i] = to_float(pack.values[i]);
  return floats;
}

// Loads a pack. `from`, and `to` in store(), must be aligned to the size of the pack, but at most
// to 16 bytes. A kernel that loads several packs before it uses the first should call load_pack(),
// because 16-bit elements converted to floats would occupy twice as many registers.
template <int kWidth, typename T>
__device__ Pack<T, kWidth> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(from);
}
template <int kWidth, typename T>
__device__ Floats<kWidth> load(const T* from) {
  return to_floats(load_pack<kWidth>(from));
}

template <int kWidth, typename T>
__device__ void store(T* to, const Floats<kWidth>& floats) {
  Pack<T, kWidth> pack;
  for (int i = 0; i < kWidth; ++i) pack.values[i] = from_float<T>(floats[i]);
#ifdef __CUDA_ARCH__
  if constexpr (sizeof pack == sizeof(uint4)) {
    // __stwb stores 16 bytes at once; nvcc may split an assignment into several stores.
    return __stwb(reinterpret_cast<uint4*>(to), std::bit_cast<uint4>(pack));
  }
#endif
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

// Returns whether all pointers are aligned to 16 bytes; null counts as aligned.
template <typename... T>
bool aligned(const T*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % kVectorBytes == 0) && ...);
}

// Returns whether rows of `channels` elements of T fill packs of 16 bytes.
template <typename T>
constexpr bool fills_packs(int channels) {
  return channels * sizeof(T) % kVectorBytes == 0;
}

// Returns whether a kernel may read maps in packs of 16 bytes: whether all pointers (maps and
// arrays per channel) are aligned, and rows of `channels` elements of T fill packs.
template <typename T, typename... Pointers>
bool rows_in_vectors(int channels, const Pointers*... pointers) {
  return fills_packs<T>(channels) && aligned(pointers...);
}

// Throws InternalError if rows of `channels` elements fill packs of 16 bytes but `vectors` is
// false, because a map is not aligned. Called for batch norms with a mask: if rows fill packs, the
// mask has a byte for each pack, so a kernel cannot use the mask element by element.
template <typename T>
void check_whole_packs(int channels, bool vectors) {
  check(vectors == fills_packs<T>(channels), "maps with a mask are aligned to 16 bytes");
}

// Calls body(std::integral_constant<int, width>()), where width is the number of elements of T in
// 16 bytes if `vectors`, otherwise 1.
template <typename T, typename Body>
void with_width(bool vectors, const Body& body) {
  if (vectors) {
    body(std::integral_constant<int, kVectorBytes / static_cast<int>(sizeof(T))>{});
  } else {
    body(std::integral_constant<int, 1>{});
  }
}

// Calls body(std::bool_constant<flag>()). A kernel takes flags that decide on a load as template
// parameters, because with a branch around a load, the compiler could not issue the load together
// with others.
template <typename Body>
void with_flag(bool flag, const Body& body) {
  if (flag) {
    body(std::true_type{});
  } else {
    body(std::false_type{});
  }
}

}  // namespace syncopate::cuda
