// Upsampling: a thread computes one pack of channels of one pixel. It writes each element once, and
// reads the others in a fixed order.
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// The two rows, or columns, between which a row of the output lies, and the share of the second.
struct Between {
  int first, second;
  float share;
};

// Row `out` lies at (out + 0.5) / scale - 0.5, but not in front of the first row nor behind the
// last.
__device__ inline Between between(int out, const UpsampleShape& shape, int size) {
  if (!shape.is_bilinear) return {out / shape.scale, out / shape.scale, 0.0F};
  const int whole = 2 * shape.scale;
  const int place = 2 * out + 1 - shape.scale;  // times 2 * scale
  if (place <= 0) return {0, 0, 0.0F};
  const int first = place / whole;
  if (first + 1 >= size) return {size - 1, size - 1, 0.0F};
  return {first, first + 1, static_cast<float>(place % whole) / static_cast<float>(whole)};
}

// The weight of row `in` in row `out` of the output.
__device__ inline float share_of(int in, int out, const UpsampleShape& shape, int size) {
  const Between rows = between(out, shape, size);
  return (rows.first == in ? 1.0F - rows.share : 0.0F) + (rows.second == in ? rows.share : 0.0F);
}

template <typename T>
struct UpsampleForward {
  UpsampleShape shape;
  const T* x;
  T* y;

  template <int kWidth>
  __device__ void at(std::int64_t out, int channel) const {
    const Pixel pixel = pixel_of(out, shape.height * shape.scale, shape.width * shape.scale);
    const Between rows = between(pixel.row, shape, shape.height);
    const Between columns = between(pixel.column, shape, shape.width);
    Floats<kWidth> sums{};
    const auto add = [&](int row, int column, float weight) {
      if (weight == 0.0F) return;
      const auto values = load<kWidth>(
          x + channel + index_of(pixel.n, row, column, shape.height, shape.width) * shape.channels);
      for (int i = 0; i < kWidth; ++i) sums[i] += values[i] * weight;
    };
    add(rows.first, columns.first, (1.0F - rows.share) * (1.0F - columns.share));
    add(rows.first, columns.second, (1.0F - rows.share) * columns.share);
    add(rows.second, columns.first, rows.share * (1.0F - columns.share));
    add(rows.second, columns.second, rows.share * columns.share);
    store(y + out * shape.channels + channel, sums);
  }
};

// The sum of the gradients of all pixels of the output that depend on a pixel.
template <typename T>
struct UpsampleBackward {
  UpsampleShape shape;
  const T* dy;
  T* dx;

  // The rows of the output that may depend on a row.
  struct Range {
    int begin, end;
  };
  __device__ Range range_of(int in, int size) const {
    const int margin = shape.is_bilinear ? 1 : 0;
    const int begin = (in - margin) * shape.scale;
    const int end = (in + 1 + margin) * shape.scale;
    return {begin < 0 ? 0 : begin, end < size * shape.scale ? end : size * shape.scale};
  }

  template <int kWidth>
  __device__ void at(std::int64_t in, int channel) const {
    const Pixel pixel = pixel_of(in, shape.height, shape.width);
    const Range rows = range_of(pixel.row, shape.height);
    const Range columns = range_of(pixel.column, shape.width);
    Floats<kWidth> sums{};
    for (int row = rows.begin; row < rows.end; ++row) {
      const float bottom = share_of(pixel.row, row, shape, shape.height);
      for (int column = columns.begin; column < columns.end; ++column) {
        const float weight = bottom * share_of(pixel.column, column, shape, shape.width);
        if (weight == 0.0F) continue;
        const auto gradients = load<kWidth>(
            dy + channel +
            index_of(pixel.n, row, column, shape.height * shape.scale, shape.width * shape.scale) *
                shape.channels);
        for (int i = 0; i < kWidth; ++i) sums[i] += gradients[i] * weight;
      }
    }
    store(dx + in * shape.channels + channel, sums);
  }
};

}  // namespace

template <typename T>
void upsample_forward(const UpsampleShape& shape, const T* x, T* y, cudaStream_t stream) {
  for_each_row<T>("upsample_forward", UpsampleForward<T>{shape, x, y},
                  shape.n * shape.height * shape.width * shape.scale * shape.scale, shape.channels,
                  rows_in_vectors<T>(shape.channels, x, y), stream);
}

template <typename T>
void upsample_backward(const UpsampleShape& shape, const T* dy, T* dx, cudaStream_t stream) {
  for_each_row<T>("upsample_backward", UpsampleBackward<T>{shape, dy, dx},
                  shape.n * shape.height * shape.width, shape.channels,
                  rows_in_vectors<T>(shape.channels, dy, dx), stream);
}

template decltype(upsample_forward<float>) upsample_forward<float>;
template decltype(upsample_forward<__nv_bfloat16>) upsample_forward<__nv_bfloat16>;
template decltype(upsample_forward<__half>) upsample_forward<__half>;
template decltype(upsample_backward<float>) upsample_backward<float>;
template decltype(upsample_backward<__nv_bfloat16>) upsample_backward<__nv_bfloat16>;
template decltype(upsample_backward<__half>) upsample_backward<__half>;

}  // namespace syncopate::cuda
