// Sums along the axes of maps (a transpose and a mean are special cases), and products of maps with
// the factors of their channels. A thread writes each element once and sums in a fixed order.
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

template <typename T>
struct AxisSum {
  AxisSums sums;
  const T* x;
  T* y;

  __device__ float sum_at(const T* first) const {
    float sum = 0.0F;
    for (int h = 0; h < sums.counts[0]; ++h) {
      for (int w = 0; w < sums.counts[1]; ++w) {
        const T* const row = first + h * sums.inner[0] + w * sums.inner[1];
        for (int c = 0; c < sums.counts[2]; ++c) sum += to_float(row[c * sums.inner[2]]);
      }
    }
    return sum * sums.factor;
  }

  template <int kWidth>
  __device__ void at(std::int64_t row, int channel) const {
    const Pixel pixel = pixel_of(row, sums.sides[0], sums.sides[1]);
    const T* const first =
        x + pixel.n * sums.x_elements + pixel.row * sums.outer[0] + pixel.column * sums.outer[1];
    Floats<kWidth> results;
    for (int i = 0; i < kWidth; ++i) results[i] = sum_at(first + (channel + i) * sums.outer[2]);
    store(y + row * sums.sides[2] + channel, results);
  }
};

template <typename T>
struct ChannelProduct {
  const T* x;
  const T* factors;
  T* y;
  int pixels, channels;

  template <int kWidth>
  __device__ void at(std::int64_t row, int channel) const {
    auto values = load<kWidth>(x + row * channels + channel);
    const auto scales = load<kWidth>(factors + row / pixels * channels + channel);
    for (int i = 0; i < kWidth; ++i) values[i] *= scales[i];
    store(y + row * channels + channel, values);
  }
};

template <typename T>
struct ChannelProductGradient {
  const T* x;
  const T* dy;
  T* dfactors;
  int pixels, channels;

  template <int kWidth>
  __device__ void at(std::int64_t n, int channel) const {
    Floats<kWidth> sums{};
#pragma unroll 4
    for (int pixel = 0; pixel < pixels; ++pixel) {
      const std::int64_t first = (n * pixels + pixel) * channels + channel;
      const auto values = load<kWidth>(x + first);
      const auto gradients = load<kWidth>(dy + first);
      for (int i = 0; i < kWidth; ++i) sums[i] += values[i] * gradients[i];
    }
    store(dfactors + n * channels + channel, sums);
  }
};

}  // namespace

template <typename T>
void axis_sums(const AxisSums& sums, const T* x, T* y, cudaStream_t stream) {
  // Neighbours in y are apart in x, so there are no packs.
  for_each_row<T>("axis_sums", AxisSum<T>{sums, x, y}, sums.n * sums.sides[0] * sums.sides[1],
                  sums.sides[2], false, stream);
}

template <typename T>
void multiply_channels(const T* x, const T* factors, T* y, std::int64_t n, int pixels, int channels,
                       cudaStream_t stream) {
  for_each_row<T>("multiply_channels", ChannelProduct<T>{x, factors, y, pixels, channels},
                  n * pixels, channels, rows_in_vectors<T>(channels, x, factors, y), stream);
}

template <typename T>
void multiply_channels_gradient(const T* x, const T* dy, T* dfactors, std::int64_t n, int pixels,
                                int channels, cudaStream_t stream) {
  for_each_row<T>("multiply_channels_gradient",
                  ChannelProductGradient<T>{x, dy, dfactors, pixels, channels}, n, channels,
                  rows_in_vectors<T>(channels, x, dy, dfactors), stream);
}

template decltype(axis_sums<float>) axis_sums<float>;
template decltype(axis_sums<__nv_bfloat16>) axis_sums<__nv_bfloat16>;
template decltype(axis_sums<__half>) axis_sums<__half>;
template decltype(multiply_channels<float>) multiply_channels<float>;
template decltype(multiply_channels<__nv_bfloat16>) multiply_channels<__nv_bfloat16>;
template decltype(multiply_channels<__half>) multiply_channels<__half>;
template decltype(multiply_channels_gradient<float>) multiply_channels_gradient<float>;
template decltype(multiply_channels_gradient<__nv_bfloat16>)
    multiply_channels_gradient<__nv_bfloat16>;
template decltype(multiply_channels_gradient<__half>) multiply_channels_gradient<__half>;

}  // namespace syncopate::cuda
