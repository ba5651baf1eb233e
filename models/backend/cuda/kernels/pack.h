// Elements in memory and in registers: up to 16 bytes move at once, arithmetic is f32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace syncopate::cuda {

inline constexpr int kVectorBytes = 16;

// kWidth elements that one instruction moves (two where they are more than 16 bytes).
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

// To nearest even.
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

// `from` stands on a multiple of the pack's alignment; so does `to` below.
template <int kWidth, typename T>
__device__ Floats<kWidth> load(const T* from) {
  const auto pack = *reinterpret_cast<const Pack<T, kWidth>*>(from);
  Floats<kWidth> floats;
  for (int i = 0; i < kWidth; ++i) floats[i] = to_float(pack.values[i]);
  return floats;
}

template <int kWidth, typename T>
__device__ void store(T* to, const Floats<kWidth>& floats) {
  Pack<T, kWidth> pack;
  for (int i = 0; i < kWidth; ++i) pack.values[i] = from_float<T>(floats[i]);
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

// One by one: what belongs to channels is f32, wherever it stands.
template <int kWidth>
__device__ Floats<kWidth> load_each(const float* from) {
  Floats<kWidth> floats;
  for (int i = 0; i < kWidth; ++i) floats[i] = from[i];
  return floats;
}

// Whether all stand on 16 bytes; null does.
template <typename... T>
bool aligned(const T*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % kVectorBytes == 0) && ...);
}

// Whether rows of so many channels can be read in packs of 16 bytes, too.
template <typename T, typename... Pointers>
bool rows_in_vectors(int channels, const Pointers*... maps) {
  return channels * sizeof(T) % kVectorBytes == 0 && aligned(maps...);
}

// Calls body(std::integral_constant<int, width>): 16 bytes of T, or one element.
template <typename T, typename Body>
void with_width(bool vectors, const Body& body) {
  if (vectors) {
    body(std::integral_constant<int, kVectorBytes / static_cast<int>(sizeof(T))>{});
  } else {
    body(std::integral_constant<int, 1>{});
  }
}

}  // namespace syncopate::cuda
