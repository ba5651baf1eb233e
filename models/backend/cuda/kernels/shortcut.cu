// CUDA kernels of ResNet's shortcut A: take every stride-th pixel and append channels of zeros.
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

template <typename T>
struct ShortcutForward {
  ShortcutShape shape;
  int out_height, out_width;
  const T* x;
  T* y;

  template <int kWidth>
  __device__ void at(std::int64_t out, int channel) const {
    Floats<kWidth> values{};
    if (channel < shape.channels) {
      const Pixel pixel = pixel_of(out, out_height, out_width);
      const std::int64_t in = index_of(pixel.n, pixel.row * shape.stride,
                                       pixel.column * shape.stride, shape.height, shape.width);
      values = load<kWidth>(x + in * shape.channels + channel);
    }
    store(y + out * shape.out_channels + channel, values);
  }
};

template <typename T>
struct ShortcutBackward {
  ShortcutShape shape;
  int out_height, out_width;
  const T* dy;
  T* dx;

  template <int kWidth>
  __device__ void at(std::int64_t in, int channel) const {
    const Pixel pixel = pixel_of(in, shape.height, shape.width);
    Floats<kWidth> gradients{};
    if (pixel.row % shape.stride == 0 && pixel.column % shape.stride == 0) {
      const std::int64_t out = index_of(pixel.n, pixel.row / shape.stride,
                                        pixel.column / shape.stride, out_height, out_width);
      gradients = load<kWidth>(dy + out * shape.out_channels + channel);
    }
    store(dx + in * shape.channels + channel, gradients);
  }
};

int ceil_divide(int a, int b) { return (a + b - 1) / b; }

}  // namespace

template <typename T>
void shortcut_forward(const ShortcutShape& shape, const T* x, T* y, cudaStream_t stream) {
  const int out_height = ceil_divide(shape.height, shape.stride);
  const int out_width = ceil_divide(shape.width, shape.stride);
  const bool vectors =
      rows_in_vectors<T>(shape.channels, x) && rows_in_vectors<T>(shape.out_channels, y);
  for_each_row<T>("shortcut_forward", ShortcutForward<T>{shape, out_height, out_width, x, y},
                  shape.n * out_height * out_width, shape.out_channels, vectors, stream);
}

template <typename T>
void shortcut_backward(const ShortcutShape& shape, const T* dy, T* dx, cudaStream_t stream) {
  const int out_height = ceil_divide(shape.height, shape.stride);
  const int out_width = ceil_divide(shape.width, shape.stride);
  const bool vectors =
      rows_in_vectors<T>(shape.channels, dx) && rows_in_vectors<T>(shape.out_channels, dy);
  for_each_row<T>("shortcut_backward", ShortcutBackward<T>{shape, out_height, out_width, dy, dx},
                  shape.n * shape.height * shape.width, shape.channels, vectors, stream);
}

template decltype(shortcut_forward<float>) shortcut_forward<float>;
template decltype(shortcut_forward<__nv_bfloat16>) shortcut_forward<__nv_bfloat16>;
template decltype(shortcut_forward<__half>) shortcut_forward<__half>;
template decltype(shortcut_backward<float>) shortcut_backward<float>;
template decltype(shortcut_backward<__nv_bfloat16>) shortcut_backward<__nv_bfloat16>;
template decltype(shortcut_backward<__half>) shortcut_backward<__half>;

}  // namespace syncopate::cuda
