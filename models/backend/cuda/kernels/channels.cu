// Adds channels to maps and removes channels, because cuDNN's kernels want the samples' three
// channels padded to four or eight.
#include <algorithm>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// Writes y [rows, y_channels]; Source::at(row, channel) computes an element. A thread writes a
// whole row in one pack if kWidth is y_channels, else single elements (kWidth is 1).
template <int kWidth, typename To, typename Source>
__global__ void __launch_bounds__(kThreads)
    with_channels_kernel(Source source, int channels, To* y, int y_channels, std::int64_t packs) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < packs;
       i += threads) {
    const std::int64_t row = kWidth == 1 ? i / y_channels : i;
    const int first = kWidth == 1 ? static_cast<int>(i - row * y_channels) : 0;
    Floats<kWidth> values{};
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (first + k >= channels) break;
      values[k] = source.at(row, first + k);
    }
    store(y + i * kWidth, values);
  }
}

template <typename To, typename Source>
void start(const char* name, const Source& source, int channels, To* y, int y_channels,
           std::int64_t rows, cudaStream_t stream) {
  if (rows == 0) return;
  const auto start_with = [&](auto width) {
    const std::int64_t packs = rows * y_channels / width;
    const std::int64_t blocks =
        std::min<std::int64_t>((packs + kThreads - 1) / kThreads, kMostBlocks);
    launch({name, dim3(static_cast<unsigned>(blocks)), kThreads, stream},
           with_channels_kernel<width.value, To, Source>, source, channels, y, y_channels, packs);
  };
  if (y_channels == 8 && aligned(y)) return start_with(std::integral_constant<int, 8>{});
  if (y_channels == 4 && aligned(y)) return start_with(std::integral_constant<int, 4>{});
  start_with(std::integral_constant<int, 1>{});
}

template <typename From>
struct AsTheyAre {
  const From* x;
  int channels;
  __device__ float at(std::int64_t row, int channel) const {
    return to_float(x[row * channels + channel]);
  }
};

template <typename From>
struct Normalised {
  const From* x;
  float unit;
  const float* mean;
  const float* stddev;
  int channels;
  __device__ float at(std::int64_t row, int channel) const {
    return (to_float(x[row * channels + channel]) / unit - mean[channel]) / stddev[channel];
  }
};

}  // namespace

template <typename From, typename To>
void with_channels(const From* x, int channels, To* y, int y_channels, std::int64_t rows,
                   cudaStream_t stream) {
  start("with_channels", AsTheyAre<From>{x, channels}, channels, y, y_channels, rows, stream);
}

template <typename From, typename T>
void normalise_with_channels(const From* x, float unit, const float* mean, const float* stddev,
                             int channels, T* y, int y_channels, std::int64_t rows,
                             cudaStream_t stream) {
  start("normalise_with_channels", Normalised<From>{x, unit, mean, stddev, channels}, channels, y,
        y_channels, rows, stream);
}

// Instantiates padding for samples (u8, f32), weights, and the way back to f32 gradients.
template void normalise_with_channels(const std::uint8_t*, float, const float*, const float*, int,
                                      float*, int, std::int64_t, cudaStream_t);
template void normalise_with_channels(const std::uint16_t*, float, const float*, const float*, int,
                                      float*, int, std::int64_t, cudaStream_t);
template void normalise_with_channels(const float*, float, const float*, const float*, int, float*,
                                      int, std::int64_t, cudaStream_t);
template void normalise_with_channels(const std::uint8_t*, float, const float*, const float*, int,
                                      __nv_bfloat16*, int, std::int64_t, cudaStream_t);
template void normalise_with_channels(const std::uint16_t*, float, const float*, const float*, int,
                                      __nv_bfloat16*, int, std::int64_t, cudaStream_t);
template void normalise_with_channels(const float*, float, const float*, const float*, int,
                                      __nv_bfloat16*, int, std::int64_t, cudaStream_t);
template void normalise_with_channels(const std::uint8_t*, float, const float*, const float*, int,
                                      __half*, int, std::int64_t, cudaStream_t);
template void normalise_with_channels(const std::uint16_t*, float, const float*, const float*, int,
                                      __half*, int, std::int64_t, cudaStream_t);
template void normalise_with_channels(const float*, float, const float*, const float*, int, __half*,
                                      int, std::int64_t, cudaStream_t);
template void with_channels(const float*, int, float*, int, std::int64_t, cudaStream_t);
template void with_channels(const float*, int, __nv_bfloat16*, int, std::int64_t, cudaStream_t);
template void with_channels(const float*, int, __half*, int, std::int64_t, cudaStream_t);
template void with_channels(const __nv_bfloat16*, int, __nv_bfloat16*, int, std::int64_t,
                            cudaStream_t);
template void with_channels(const __half*, int, __half*, int, std::int64_t, cudaStream_t);
template void with_channels(const __nv_bfloat16*, int, float*, int, std::int64_t, cudaStream_t);
template void with_channels(const __half*, int, float*, int, std::int64_t, cudaStream_t);

}  // namespace syncopate::cuda
