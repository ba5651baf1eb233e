// Folds maps: blocks of pixels become the channels of one pixel, and channels of zeros are added,
// because cuDNN convolves the three channels of samples slowly.
#include <climits>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// Source::at(pixel, channel) computes an element of x.

// Writes the same pixels with y_channels channels, a thread one pixel.
template <int y_channels, typename To, typename Source>
__global__ void __launch_bounds__(kThreads)
    with_channels_kernel(Source source, int channels, To* y, std::int64_t pixels) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < pixels;
       i += threads) {
    Floats<y_channels> values{};
#pragma unroll
    for (int k = 0; k < y_channels; ++k) {
      if (k >= channels) break;
      values[k] = source.at(i, k);
    }
    store(y + i * y_channels, values);
  }
}

// A thread writes kWidth channels of one pixel of y. Index holds the number of packs.
template <int kWidth, typename Index, typename To, typename Source>
__global__ void __launch_bounds__(kThreads)
    fold_kernel(FoldShape shape, Source source, To* y, Index packs) {
  const Index packs_per_pixel = shape.y_channels / kWidth;
  const Index threads = static_cast<Index>(gridDim.x) * kThreads;
  for (Index i = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x; i < packs; i += threads) {
    const Index pixel = i / packs_per_pixel;
    const Index line = pixel / shape.y_width;  // counts rows of all samples
    const Index sample = line / shape.y_height;
    const int top = static_cast<int>(line - sample * shape.y_height) * shape.block - shape.top;
    const int left = static_cast<int>(pixel - line * shape.y_width) * shape.block - shape.left;
    const int first = static_cast<int>(i - pixel * packs_per_pixel) * kWidth;
    Floats<kWidth> values{};
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const int place = (first + k) / shape.channels;  // in the block
      const int row = place / shape.block;
      const int h = top + row;
      const int w = left + place - row * shape.block;
      if (row >= shape.block || h < 0 || h >= shape.height || w < 0 || w >= shape.width) continue;
      const std::int64_t from =
          (static_cast<std::int64_t>(sample) * shape.height + h) * shape.width + w;
      values[k] = source.at(from, first + k - place * shape.channels);
    }
    store(y + static_cast<std::int64_t>(i) * kWidth, values);
  }
}

template <typename To, typename Source>
void start(const char* name, const FoldShape& shape, const Source& source, To* y,
           cudaStream_t stream) {
  const std::int64_t elements = shape.n * shape.y_height * shape.y_width * shape.y_channels;
  if (elements == 0) return;
  // The loop adds the number of threads to the index once more than there are packs. A map that is
  // too large for an int is rare, so it has one slow kernel instead of three.
  if (elements >= INT_MAX - kMostBlocks * kThreads) {
    return launch({name, blocks_for(elements), kThreads, stream},
                  fold_kernel<1, std::int64_t, To, Source>, shape, source, y, elements);
  }
  const auto start_with = [&](auto width) {
    const std::int64_t packs = elements / width.value;
    if (shape.block == 1 && shape.y_channels == width.value) {
      return launch({name, blocks_for(packs), kThreads, stream},
                    with_channels_kernel<width.value, To, Source>, source, shape.channels, y,
                    packs);
    }
    launch({name, blocks_for(packs), kThreads, stream}, fold_kernel<width.value, int, To, Source>,
           shape, source, y, static_cast<int>(packs));
  };
  if (shape.y_channels % 8 == 0 && aligned(y)) return start_with(std::integral_constant<int, 8>{});
  if (shape.y_channels % 4 == 0 && aligned(y)) return start_with(std::integral_constant<int, 4>{});
  start_with(std::integral_constant<int, 1>{});
}

template <typename From>
struct AsTheyAre {
  const From* x;
  int channels;
  __device__ float at(std::int64_t pixel, int channel) const {
    return to_float(x[pixel * channels + channel]);
  }
};

template <typename From>
struct Normalised {
  const From* x;
  float unit;
  const float* mean;
  const float* stddev;
  int channels;
  __device__ float at(std::int64_t pixel, int channel) const {
    return (to_float(x[pixel * channels + channel]) / unit - mean[channel]) / stddev[channel];
  }
};

// A thread copies one element of x.
template <typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    unfold_kernel(FoldShape shape, const From* y, To* x, std::int64_t elements) {
  for_indices_of_thread(elements, [&](std::int64_t i) {
    const std::int64_t pixel = i / shape.channels;
    const std::int64_t line = pixel / shape.width;
    const std::int64_t sample = line / shape.height;
    const int h = static_cast<int>(line - sample * shape.height) + shape.top;
    const int w = static_cast<int>(pixel - line * shape.width) + shape.left;
    const int row = h / shape.block;
    const int column = w / shape.block;
    const int place = (h - row * shape.block) * shape.block + w - column * shape.block;
    const std::int64_t from = (sample * shape.y_height + row) * shape.y_width + column;
    const std::int64_t channel = place * shape.channels + i - pixel * shape.channels;
    x[i] = from_float<To>(to_float(y[from * shape.y_channels + channel]));
  });
}

}  // namespace

template <typename T>
void fold(const FoldShape& shape, const T* x, T* y, cudaStream_t stream) {
  start("fold", shape, AsTheyAre<T>{x, shape.channels}, y, stream);
}

template <typename From, typename T>
void fold_normalised(const FoldShape& shape, const From* x, float unit, const float* mean,
                     const float* stddev, T* y, cudaStream_t stream) {
  start("fold_normalised", shape, Normalised<From>{x, unit, mean, stddev, shape.channels}, y,
        stream);
}

template <typename From>
void unfold(const FoldShape& shape, const From* y, float* x, cudaStream_t stream) {
  const std::int64_t elements = shape.n * shape.height * shape.width * shape.channels;
  if (elements == 0) return;
  launch({"unfold", blocks_for(elements), kThreads, stream}, unfold_kernel<From, float>, shape, y,
         x, elements);
}

template decltype(fold<float>) fold<float>;
template decltype(fold<__nv_bfloat16>) fold<__nv_bfloat16>;
template decltype(fold<__half>) fold<__half>;
template decltype(unfold<float>) unfold<float>;
template decltype(unfold<__nv_bfloat16>) unfold<__nv_bfloat16>;
template decltype(unfold<__half>) unfold<__half>;
template decltype(fold_normalised<std::uint8_t, float>) fold_normalised<std::uint8_t, float>;
template decltype(fold_normalised<std::uint8_t, __nv_bfloat16>)
    fold_normalised<std::uint8_t, __nv_bfloat16>;
template decltype(fold_normalised<std::uint8_t, __half>) fold_normalised<std::uint8_t, __half>;
template decltype(fold_normalised<std::uint16_t, float>) fold_normalised<std::uint16_t, float>;
template decltype(fold_normalised<std::uint16_t, __nv_bfloat16>)
    fold_normalised<std::uint16_t, __nv_bfloat16>;
template decltype(fold_normalised<std::uint16_t, __half>) fold_normalised<std::uint16_t, __half>;
template decltype(fold_normalised<float, float>) fold_normalised<float, float>;
template decltype(fold_normalised<float, __nv_bfloat16>) fold_normalised<float, __nv_bfloat16>;
template decltype(fold_normalised<float, __half>) fold_normalised<float, __half>;

}  // namespace syncopate::cuda
