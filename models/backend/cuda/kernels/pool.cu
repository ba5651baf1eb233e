// The pooling kernels: a thread computes one pack of channels of one pixel. The thread writes each
// output element once, and reads the inputs in a fixed order.
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// An Extent is the range of rows or columns of a pooling window that lie inside the map, counted
// from the window's first row or column.
struct Extent {
  int begin, end;
};
__device__ inline Extent inside(int first, int window, int size) {
  return {first < 0 ? -first : 0, first + window > size ? size - first : window};
}

template <typename T>
struct MaxPoolForward {
  PoolShape shape;
  int out_height, out_width;
  const T* x;
  T* y;
  std::uint8_t* chosen;

  template <int kWidth>
  __device__ NoConstants constants(int) const {
    return {};
  }

  template <int kWidth>
  __device__ void at(std::int64_t out, int channel, NoConstants) const {
    const Pixel pixel = pixel_of(out, out_height, out_width);
    const int top = pixel.row * shape.stride - shape.pad;
    const int left = pixel.column * shape.stride - shape.pad;
    const Extent rows = inside(top, shape.window, shape.height);
    const Extent columns = inside(left, shape.window, shape.width);
    const auto at_place = [&](int r, int s) {
      return load<kWidth>(x + channel +
                          index_of(pixel.n, top + r, left + s, shape.height, shape.width) *
                              shape.channels);
    };
    auto best = at_place(rows.begin, columns.begin);
    Pack<std::uint8_t, kWidth> places;
    for (int i = 0; i < kWidth; ++i) {
      places.values[i] = static_cast<std::uint8_t>(rows.begin * shape.window + columns.begin);
    }
    for (int r = rows.begin; r < rows.end; ++r) {
      for (int s = columns.begin; s < columns.end; ++s) {
        const auto values = at_place(r, s);
        for (int i = 0; i < kWidth; ++i) {
          if (values[i] > best[i]) {
            best[i] = values[i];
            places.values[i] = static_cast<std::uint8_t>(r * shape.window + s);
          }
        }
      }
    }
    const std::int64_t first = out * shape.channels + channel;
    store(y + first, best);
    *reinterpret_cast<Pack<std::uint8_t, kWidth>*>(chosen + first) = places;
  }
};

template <typename T>
struct MaxPoolBackward {
  PoolShape shape;
  int out_height, out_width;
  const T* dy;
  const std::uint8_t* chosen;
  T* dx;

  template <int kWidth>
  __device__ NoConstants constants(int) const {
    return {};
  }

  // first_window() and last_window() bound the pooling windows that contain `place`: window w
  // covers w * stride and the window - 1 places behind it. Places are counted from the first one of
  // the padding.
  __device__ int first_window(int place) const {
    return place < shape.window ? 0 : (place - shape.window) / shape.stride + 1;
  }
  __device__ int last_window(int place, int windows) const {
    const int last = place / shape.stride;
    return last < windows ? last : windows - 1;
  }

  template <int kWidth>
  __device__ void at(std::int64_t in, int channel, NoConstants) const {
    const Pixel pixel = pixel_of(in, shape.height, shape.width);
    const int padded_row = pixel.row + shape.pad;
    const int padded_column = pixel.column + shape.pad;
    Floats<kWidth> gradient{};
    for (int row = first_window(padded_row); row <= last_window(padded_row, out_height); ++row) {
      for (int column = first_window(padded_column);
           column <= last_window(padded_column, out_width); ++column) {
        const std::int64_t first =
            index_of(pixel.n, row, column, out_height, out_width) * shape.channels + channel;
        const int place = (padded_row - row * shape.stride) * shape.window +
                          (padded_column - column * shape.stride);
        const auto gradients = load<kWidth>(dy + first);
        const auto places = *reinterpret_cast<const Pack<std::uint8_t, kWidth>*>(chosen + first);
        for (int i = 0; i < kWidth; ++i) {
          if (places.values[i] == place) gradient[i] += gradients[i];
        }
      }
    }
    store(dx + in * shape.channels + channel, gradient);
  }
};

template <typename T>
struct AveragePoolForward {
  const T* x;
  T* y;
  int pixels, channels;

  template <int kWidth>
  __device__ NoConstants constants(int) const {
    return {};
  }

  template <int kWidth>
  __device__ void at(std::int64_t n, int channel, NoConstants) const {
    Floats<kWidth> sums{};
#pragma unroll 4
    for (int pixel = 0; pixel < pixels; ++pixel) {
      const auto values = load<kWidth>(x + (n * pixels + pixel) * channels + channel);
      for (int i = 0; i < kWidth; ++i) sums[i] += values[i];
    }
    for (int i = 0; i < kWidth; ++i) sums[i] /= static_cast<float>(pixels);
    store(y + n * channels + channel, sums);
  }
};

template <typename T>
struct AveragePoolBackward {
  const T* dy;
  T* dx;
  int pixels, channels;

  template <int kWidth>
  __device__ NoConstants constants(int) const {
    return {};
  }

  template <int kWidth>
  __device__ void at(std::int64_t in, int channel, NoConstants) const {
    auto gradients = load<kWidth>(dy + in / pixels * channels + channel);
    for (int i = 0; i < kWidth; ++i) gradients[i] /= static_cast<float>(pixels);
    store(dx + in * channels + channel, gradients);
  }
};

}  // namespace

template <typename T>
void max_pool_forward(const PoolShape& shape, const T* x, T* y, std::uint8_t* chosen,
                      cudaStream_t stream) {
  const MaxPoolForward<T> forward{shape, shape.out_height(), shape.out_width(), x, y, chosen};
  for_each_row<T>("max_pool_forward", forward, shape.n * shape.out_height() * shape.out_width(),
                  shape.channels, rows_in_vectors<T>(shape.channels, x, y, chosen), stream);
}

template <typename T>
void max_pool_backward(const PoolShape& shape, const T* dy, const std::uint8_t* chosen, T* dx,
                       cudaStream_t stream) {
  const MaxPoolBackward<T> backward{shape, shape.out_height(), shape.out_width(), dy, chosen, dx};
  for_each_row<T>("max_pool_backward", backward, shape.n * shape.height * shape.width,
                  shape.channels, rows_in_vectors<T>(shape.channels, dy, chosen, dx), stream);
}

template <typename T>
void average_pool_forward(const T* x, T* y, std::int64_t n, int pixels, int channels,
                          cudaStream_t stream) {
  for_each_row<T>("average_pool_forward", AveragePoolForward<T>{x, y, pixels, channels}, n,
                  channels, rows_in_vectors<T>(channels, x, y), stream);
}

template <typename T>
void average_pool_backward(const T* dy, T* dx, std::int64_t n, int pixels, int channels,
                           cudaStream_t stream) {
  for_each_row<T>("average_pool_backward", AveragePoolBackward<T>{dy, dx, pixels, channels},
                  n * pixels, channels, rows_in_vectors<T>(channels, dy, dx), stream);
}

// Instantiates the pooling functions for float, __nv_bfloat16 and __half.
template void max_pool_forward(const PoolShape&, const float*, float*, std::uint8_t*, cudaStream_t);
template void max_pool_backward(const PoolShape&, const float*, const std::uint8_t*, float*,
                                cudaStream_t);
template void average_pool_forward(const float*, float*, std::int64_t, int, int, cudaStream_t);
template void average_pool_backward(const float*, float*, std::int64_t, int, int, cudaStream_t);
template void max_pool_forward(const PoolShape&, const __nv_bfloat16*, __nv_bfloat16*,
                               std::uint8_t*, cudaStream_t);
template void max_pool_backward(const PoolShape&, const __nv_bfloat16*, const std::uint8_t*,
                                __nv_bfloat16*, cudaStream_t);
template void average_pool_forward(const __nv_bfloat16*, __nv_bfloat16*, std::int64_t, int, int,
                                   cudaStream_t);
template void average_pool_backward(const __nv_bfloat16*, __nv_bfloat16*, std::int64_t, int, int,
                                    cudaStream_t);
template void max_pool_forward(const PoolShape&, const __half*, __half*, std::uint8_t*,
                               cudaStream_t);
template void max_pool_backward(const PoolShape&, const __half*, const std::uint8_t*, __half*,
                                cudaStream_t);
template void average_pool_forward(const __half*, __half*, std::int64_t, int, int, cudaStream_t);
template void average_pool_backward(const __half*, __half*, std::int64_t, int, int, cudaStream_t);

}  // namespace syncopate::cuda
