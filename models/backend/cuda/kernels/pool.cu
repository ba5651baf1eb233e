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

// Calls body(std::integral_constant<int, size>) for sizes 1 to 3, and with 0 for larger ones. If
// the compiler knows the size of a kernel's inner loop, the kernel starts its loads before it uses
// the first.
template <typename Body>
void with_small_size(int size, const Body& body) {
  switch (size) {
    case 1:
      return body(std::integral_constant<int, 1>{});
    case 2:
      return body(std::integral_constant<int, 2>{});
    case 3:
      return body(std::integral_constant<int, 3>{});
    default:
      return body(std::integral_constant<int, 0>{});
  }
}

// kWindow is the window if it is small, else 0.
template <typename T, int kWindow>
struct MaxPoolForward {
  PoolShape shape;
  int out_height, out_width;
  const T* x;
  T* y;
  std::uint8_t* chosen;

  // The largest elements so far of a pack of channels, and their places in the window.
  template <int kWidth>
  struct Best {
    Floats<kWidth> values;
    Pack<std::uint8_t, kWidth> places;
    bool is_empty = true;

    __device__ void take(const Pack<T, kWidth>& pack, int place) {
      const auto floats = to_floats(pack);
      for (int i = 0; i < kWidth; ++i) {
        if (is_empty || floats[i] > values[i]) {
          values[i] = floats[i];
          places.values[i] = static_cast<std::uint8_t>(place);
        }
      }
      is_empty = false;
    }
  };

  template <int kWidth>
  __device__ void at(std::int64_t out, int channel) const {
    const Pixel pixel = pixel_of(out, out_height, out_width);
    const int top = pixel.row * shape.stride - shape.pad;
    const int left = pixel.column * shape.stride - shape.pad;
    const Extent rows = inside(top, shape.window, shape.height);
    const Extent columns = inside(left, shape.window, shape.width);
    const auto at_place = [&](int r, int s) {
      return load_pack<kWidth>(x + channel +
                               index_of(pixel.n, top + r, left + s, shape.height, shape.width) *
                                   shape.channels);
    };
    Best<kWidth> best;
    if constexpr (kWindow > 0) {
#pragma unroll 1
      for (int r = rows.begin; r < rows.end; ++r) {
        Pack<T, kWidth> packs[kWindow];
#pragma unroll
        for (int s = 0; s < kWindow; ++s) {
          if (s >= columns.begin && s < columns.end) packs[s] = at_place(r, s);
        }
#pragma unroll
        for (int s = 0; s < kWindow; ++s) {
          if (s >= columns.begin && s < columns.end) best.take(packs[s], r * kWindow + s);
        }
      }
    } else {
      for (int r = rows.begin; r < rows.end; ++r) {
        for (int s = columns.begin; s < columns.end; ++s) {
          best.take(at_place(r, s), r * shape.window + s);
        }
      }
    }
    const std::int64_t first = out * shape.channels + channel;
    store(y + first, best.values);
    *reinterpret_cast<Pack<std::uint8_t, kWidth>*>(chosen + first) = best.places;
  }
};

// The pooling windows that contain `place`, in one dimension: window w covers w * stride and the
// window - 1 places behind it. Places are counted from the first one of the padding.
struct Windows {
  int first, last;
};
__device__ inline Windows windows_of(int place, const PoolShape& shape, int windows) {
  const int last = place / shape.stride;
  return {place < shape.window ? 0 : (place - shape.window) / shape.stride + 1,
          last < windows ? last : windows - 1};
}

// kWindows is the number of windows in one dimension that contain a pixel if it is small, else 0.
template <typename T, int kWindows>
struct MaxPoolBackward {
  PoolShape shape;
  int out_height, out_width;
  const T* dy;
  const std::uint8_t* chosen;
  T* dx;

  // The gradients of a window, and the places that its largest elements have in it.
  template <int kWidth>
  struct Window {
    Pack<T, kWidth> gradients;
    Pack<std::uint8_t, kWidth> places;
  };

  template <int kWidth>
  __device__ void at(std::int64_t in, int channel) const {
    const Pixel pixel = pixel_of(in, shape.height, shape.width);
    const int padded_row = pixel.row + shape.pad;
    const int padded_column = pixel.column + shape.pad;
    const Windows rows = windows_of(padded_row, shape, out_height);
    const Windows columns = windows_of(padded_column, shape, out_width);
    const int top = rows.first;
    const int bottom = rows.last;
    const int left = columns.first;
    const int right = columns.last;
    const auto read = [&](int row, int column) {
      const std::int64_t first =
          index_of(pixel.n, row, column, out_height, out_width) * shape.channels + channel;
      return Window<kWidth>{load_pack<kWidth>(dy + first), load_pack<kWidth>(chosen + first)};
    };
    Floats<kWidth> gradient{};
    const auto add = [&](const Window<kWidth>& window, int row, int column) {
      const int place = (padded_row - row * shape.stride) * shape.window +
                        (padded_column - column * shape.stride);
      const auto gradients = to_floats(window.gradients);
      for (int i = 0; i < kWidth; ++i) {
        if (window.places.values[i] == place) gradient[i] += gradients[i];
      }
    };
    if constexpr (kWindows > 0) {
#pragma unroll 1
      for (int row = top; row <= bottom; ++row) {
        Window<kWidth> windows[kWindows];
#pragma unroll
        for (int s = 0; s < kWindows; ++s) {
          if (left + s <= right) windows[s] = read(row, left + s);
        }
#pragma unroll
        for (int s = 0; s < kWindows; ++s) {
          if (left + s <= right) add(windows[s], row, left + s);
        }
      }
    } else {
      for (int row = top; row <= bottom; ++row) {
        for (int column = left; column <= right; ++column) add(read(row, column), row, column);
      }
    }
    store(dx + in * shape.channels + channel, gradient);
  }
};

// The mean of each window.
template <typename T>
struct WindowAverageForward {
  PoolShape shape;
  int out_height, out_width;
  const T* x;
  T* y;

  template <int kWidth>
  __device__ void at(std::int64_t out, int channel) const {
    const Pixel pixel = pixel_of(out, out_height, out_width);
    const int top = pixel.row * shape.stride - shape.pad;
    const int left = pixel.column * shape.stride - shape.pad;
    const Extent rows = inside(top, shape.window, shape.height);
    const Extent columns = inside(left, shape.window, shape.width);
    const float inverse = 1.0F / static_cast<float>(shape.window * shape.window);
    Floats<kWidth> sums{};
    for (int r = rows.begin; r < rows.end; ++r) {
      for (int s = columns.begin; s < columns.end; ++s) {
        const auto values = load<kWidth>(
            x + channel +
            index_of(pixel.n, top + r, left + s, shape.height, shape.width) * shape.channels);
        for (int i = 0; i < kWidth; ++i) sums[i] += values[i];
      }
    }
    for (int i = 0; i < kWidth; ++i) sums[i] *= inverse;
    store(y + out * shape.channels + channel, sums);
  }
};

// The sum of the gradients of all windows that contain a pixel.
template <typename T>
struct WindowAverageBackward {
  PoolShape shape;
  int out_height, out_width;
  const T* dy;
  T* dx;

  template <int kWidth>
  __device__ void at(std::int64_t in, int channel) const {
    const Pixel pixel = pixel_of(in, shape.height, shape.width);
    const Windows rows = windows_of(pixel.row + shape.pad, shape, out_height);
    const Windows columns = windows_of(pixel.column + shape.pad, shape, out_width);
    const float inverse = 1.0F / static_cast<float>(shape.window * shape.window);
    Floats<kWidth> sums{};
    for (int row = rows.first; row <= rows.last; ++row) {
      for (int column = columns.first; column <= columns.last; ++column) {
        const auto gradients = load<kWidth>(
            dy + channel + index_of(pixel.n, row, column, out_height, out_width) * shape.channels);
        for (int i = 0; i < kWidth; ++i) sums[i] += gradients[i];
      }
    }
    for (int i = 0; i < kWidth; ++i) sums[i] *= inverse;
    store(dx + in * shape.channels + channel, sums);
  }
};

template <typename T>
struct AveragePoolForward {
  const T* x;
  T* y;
  int pixels, channels;

  template <int kWidth>
  __device__ void at(std::int64_t n, int channel) const {
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
  __device__ void at(std::int64_t in, int channel) const {
    auto gradients = load<kWidth>(dy + in / pixels * channels + channel);
    for (int i = 0; i < kWidth; ++i) gradients[i] /= static_cast<float>(pixels);
    store(dx + in * channels + channel, gradients);
  }
};

}  // namespace

template <typename T>
void max_pool_forward(const PoolShape& shape, const T* x, T* y, std::uint8_t* chosen,
                      cudaStream_t stream) {
  with_small_size(shape.window, [&](auto window) {
    const MaxPoolForward<T, window.value> forward{
        shape, shape.out_height(), shape.out_width(), x, y, chosen};
    for_each_row<T>("max_pool_forward", forward, shape.n * shape.out_height() * shape.out_width(),
                    shape.channels, rows_in_vectors<T>(shape.channels, x, y, chosen), stream);
  });
}

template <typename T>
void max_pool_backward(const PoolShape& shape, const T* dy, const std::uint8_t* chosen, T* dx,
                       cudaStream_t stream) {
  with_small_size((shape.window + shape.stride - 1) / shape.stride, [&](auto windows) {
    const MaxPoolBackward<T, windows.value> backward{
        shape, shape.out_height(), shape.out_width(), dy, chosen, dx};
    for_each_row<T>("max_pool_backward", backward, shape.n * shape.height * shape.width,
                    shape.channels, rows_in_vectors<T>(shape.channels, dy, chosen, dx), stream);
  });
}

template <typename T>
void window_average_forward(const PoolShape& shape, const T* x, T* y, cudaStream_t stream) {
  const WindowAverageForward<T> forward{shape, shape.out_height(), shape.out_width(), x, y};
  for_each_row<T>("window_average_forward", forward,
                  shape.n * shape.out_height() * shape.out_width(), shape.channels,
                  rows_in_vectors<T>(shape.channels, x, y), stream);
}

template <typename T>
void window_average_backward(const PoolShape& shape, const T* dy, T* dx, cudaStream_t stream) {
  const WindowAverageBackward<T> backward{shape, shape.out_height(), shape.out_width(), dy, dx};
  for_each_row<T>("window_average_backward", backward, shape.n * shape.height * shape.width,
                  shape.channels, rows_in_vectors<T>(shape.channels, dy, dx), stream);
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

template decltype(max_pool_forward<float>) max_pool_forward<float>;
template decltype(max_pool_forward<__nv_bfloat16>) max_pool_forward<__nv_bfloat16>;
template decltype(max_pool_forward<__half>) max_pool_forward<__half>;
template decltype(max_pool_backward<float>) max_pool_backward<float>;
template decltype(max_pool_backward<__nv_bfloat16>) max_pool_backward<__nv_bfloat16>;
template decltype(max_pool_backward<__half>) max_pool_backward<__half>;
template decltype(window_average_forward<float>) window_average_forward<float>;
template decltype(window_average_forward<__nv_bfloat16>) window_average_forward<__nv_bfloat16>;
template decltype(window_average_forward<__half>) window_average_forward<__half>;
template decltype(window_average_backward<float>) window_average_backward<float>;
template decltype(window_average_backward<__nv_bfloat16>) window_average_backward<__nv_bfloat16>;
template decltype(window_average_backward<__half>) window_average_backward<__half>;
template decltype(average_pool_forward<float>) average_pool_forward<float>;
template decltype(average_pool_forward<__nv_bfloat16>) average_pool_forward<__nv_bfloat16>;
template decltype(average_pool_forward<__half>) average_pool_forward<__half>;
template decltype(average_pool_backward<float>) average_pool_backward<float>;
template decltype(average_pool_backward<__nv_bfloat16>) average_pool_backward<__nv_bfloat16>;
template decltype(average_pool_backward<__half>) average_pool_backward<__half>;

}  // namespace syncopate::cuda
