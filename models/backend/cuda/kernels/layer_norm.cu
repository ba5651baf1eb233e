// Layer norm: a group of threads computes each row of a map; the gradients of weight and bias are
// sums over the rows.
#include <cmath>

#include "models/backend/cuda/kernels/column_sums.h"
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/pack.h"
#include "models/backend/cuda/kernels/row_threads.h"

namespace syncopate::cuda {
namespace {

template <int kLanes, int kWidth, typename T>
__global__ void __launch_bounds__(kThreads)
    layer_norm_kernel(LayerNormShape shape, const T* x, const float* weight, const float* bias,
                      T* y, float* mean, float* inverse_stddev) {
  __shared__ float values[kThreads];
  const auto part = part_of_thread<kLanes, kWidth>(shape.rows, shape.channels);
  const std::int64_t begin = part.row * shape.channels;
  float sum = 0.0F;
  for (int c = part.first; c < part.end; c += part.kStep) {
    const auto inputs = load<kWidth>(x + begin + c);
    for (int i = 0; i < kWidth; ++i) sum += inputs[i];
  }
  const auto channels = static_cast<float>(shape.channels);
  const float row_mean = sum_of_row<kLanes>(sum, values) / channels;
  float squares = 0.0F;
  for (int c = part.first; c < part.end; c += part.kStep) {
    const auto inputs = load<kWidth>(x + begin + c);
    for (int i = 0; i < kWidth; ++i) {
      squares += (inputs[i] - row_mean) * (inputs[i] - row_mean);
    }
  }
  const float variance = sum_of_row<kLanes>(squares, values) / channels;
  const float inverse = 1.0F / sqrtf(variance + shape.epsilon);
  for (int c = part.first; c < part.end; c += part.kStep) {
    auto floats = load<kWidth>(x + begin + c);
    const auto weights = load<kWidth>(weight + c);
    const auto biases = load<kWidth>(bias + c);
    for (int i = 0; i < kWidth; ++i) {
      floats[i] = (floats[i] - row_mean) * inverse * weights[i] + biases[i];
    }
    store(y + begin + c, floats);
  }
  if (mean == nullptr || part.first != 0 || part.end == 0) return;
  mean[part.row] = row_mean;
  inverse_stddev[part.row] = inverse;
}

template <int kLanes, int kWidth, typename T>
__global__ void __launch_bounds__(kThreads)
    layer_norm_backward_kernel(LayerNormShape shape, const T* x, const T* dy, const float* weight,
                               const float* mean, const float* inverse_stddev, T* dx) {
  __shared__ float values[kThreads];
  const auto part = part_of_thread<kLanes, kWidth>(shape.rows, shape.channels);
  const std::int64_t begin = part.row * shape.channels;
  const float row_mean = part.end == 0 ? 0.0F : mean[part.row];
  const float inverse = part.end == 0 ? 0.0F : inverse_stddev[part.row];
  float sum = 0.0F;
  float product_sum = 0.0F;
  for (int c = part.first; c < part.end; c += part.kStep) {
    const auto inputs = load<kWidth>(x + begin + c);
    const auto gradients = load<kWidth>(dy + begin + c);
    const auto weights = load<kWidth>(weight + c);
    for (int i = 0; i < kWidth; ++i) {
      const float gradient = gradients[i] * weights[i];
      sum += gradient;
      product_sum += gradient * ((inputs[i] - row_mean) * inverse);
    }
  }
  const auto channels = static_cast<float>(shape.channels);
  const float of_mean = sum_of_row<kLanes>(sum, values) / channels;
  const float of_variance = sum_of_row<kLanes>(product_sum, values) / channels;
  for (int c = part.first; c < part.end; c += part.kStep) {
    const auto inputs = load<kWidth>(x + begin + c);
    auto floats = load<kWidth>(dy + begin + c);
    const auto weights = load<kWidth>(weight + c);
    for (int i = 0; i < kWidth; ++i) {
      const float normalised = (inputs[i] - row_mean) * inverse;
      floats[i] = inverse * (floats[i] * weights[i] - of_mean - normalised * of_variance);
    }
    store(dx + begin + c, floats);
  }
}

template <typename T>
struct ParameterGradientTerms : PlainTerms {
  static constexpr int kSums = 2;
  static constexpr int kRowsAtOnce = 2;
  const T* x;
  const T* dy;
  const float* mean;
  const float* inverse_stddev;
  int channels;

  template <int kWidth>
  struct Inputs {
    Pack<T, kWidth> x;
    Pack<T, kWidth> dy;
  };

  template <int kWidth>
  __device__ Inputs<kWidth> read(std::int64_t first) const {
    return {load_pack<kWidth>(x + first), load_pack<kWidth>(dy + first)};
  }

  template <int kWidth>
  __device__ void add(std::int64_t first, const Inputs<kWidth>& inputs, NoConstants,
                      float (&sums)[kSums][kWidth]) const {
    const std::int64_t row = first / channels;
    const float row_mean = mean[row];
    const float inverse = inverse_stddev[row];
    const auto xs = to_floats(inputs.x);
    const auto gradients = to_floats(inputs.dy);
    for (int i = 0; i < kWidth; ++i) {
      sums[0][i] += gradients[i] * ((xs[i] - row_mean) * inverse);
      sums[1][i] += gradients[i];
    }
  }
};

}  // namespace

template <typename T>
void layer_norm(const LayerNormShape& shape, const T* x, const float* weight, const float* bias,
                T* y, float* mean, float* inverse_stddev, cudaStream_t stream) {
  with_rows<T>(shape.rows, shape.channels, rows_in_vectors<T>(shape.channels, x, weight, bias, y),
               [&](auto lanes, auto width, const dim3& blocks) {
                 launch({"layer_norm", blocks, kThreads, stream},
                        layer_norm_kernel<lanes.value, width.value, T>, shape, x, weight, bias, y,
                        mean, inverse_stddev);
               });
}

template <typename T>
void layer_norm_backward(const LayerNormShape& shape, const T* x, const T* dy, const float* weight,
                         const float* mean, const float* inverse_stddev, T* dx,
                         cudaStream_t stream) {
  with_rows<T>(shape.rows, shape.channels, rows_in_vectors<T>(shape.channels, x, dy, weight, dx),
               [&](auto lanes, auto width, const dim3& blocks) {
                 launch({"layer_norm_backward", blocks, kThreads, stream},
                        layer_norm_backward_kernel<lanes.value, width.value, T>, shape, x, dy,
                        weight, mean, inverse_stddev, dx);
               });
}

template <typename T>
void layer_norm_parameter_gradients(const LayerNormShape& shape, const T* x, const T* dy,
                                    const float* mean, const float* inverse_stddev,
                                    float* gradients, void* scratch, cudaStream_t stream) {
  column_sums<T>("layer_norm_parameter_gradients",
                 ParameterGradientTerms<T>{{}, x, dy, mean, inverse_stddev, shape.channels},
                 shape.rows, shape.channels, rows_in_vectors<T>(shape.channels, x, dy), scratch,
                 gradients, nullptr, stream);
}

std::int64_t layer_norm_scratch(const LayerNormShape& shape) {
  return column_sums_scratch(shape.rows, shape.channels, 2);
}

template decltype(layer_norm<float>) layer_norm<float>;
template decltype(layer_norm<__nv_bfloat16>) layer_norm<__nv_bfloat16>;
template decltype(layer_norm<__half>) layer_norm<__half>;
template decltype(layer_norm_backward<float>) layer_norm_backward<float>;
template decltype(layer_norm_backward<__nv_bfloat16>) layer_norm_backward<__nv_bfloat16>;
template decltype(layer_norm_backward<__half>) layer_norm_backward<__half>;
template decltype(layer_norm_parameter_gradients<float>) layer_norm_parameter_gradients<float>;
template decltype(layer_norm_parameter_gradients<__nv_bfloat16>)
    layer_norm_parameter_gradients<__nv_bfloat16>;
template decltype(layer_norm_parameter_gradients<__half>) layer_norm_parameter_gradients<__half>;

}  // namespace syncopate::cuda
