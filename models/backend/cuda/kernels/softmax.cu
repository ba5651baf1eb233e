// Softmax: a group of threads computes each row of a map.
#include <cmath>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/pack.h"
#include "models/backend/cuda/kernels/row_threads.h"

namespace syncopate::cuda {
namespace {

// Source: the maximum is subtracted first, Goodfellow et al. 2016, section 4.1.
template <int kLanes, int kWidth, typename T>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(std::int64_t rows, int channels, const T* x, T* y) {
  __shared__ float values[kThreads];
  const auto part = part_of_thread<kLanes, kWidth>(rows, channels);
  const std::int64_t begin = part.row * channels;
  float most = -INFINITY;
  for (int c = part.first; c < part.end; c += part.kStep) {
    const auto inputs = load<kWidth>(x + begin + c);
    for (int i = 0; i < kWidth; ++i) most = fmaxf(most, inputs[i]);
  }
  most = combined_in_row<kLanes>(most, values, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0.0F;
  for (int c = part.first; c < part.end; c += part.kStep) {
    const auto inputs = load<kWidth>(x + begin + c);
    for (int i = 0; i < kWidth; ++i) sum += expf(inputs[i] - most);
  }
  sum = sum_of_row<kLanes>(sum, values);
  for (int c = part.first; c < part.end; c += part.kStep) {
    auto floats = load<kWidth>(x + begin + c);
    for (int i = 0; i < kWidth; ++i) floats[i] = expf(floats[i] - most) / sum;
    store(y + begin + c, floats);
  }
}

template <int kLanes, int kWidth, typename T>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_kernel(std::int64_t rows, int channels, const T* y, const T* dy, T* dx) {
  __shared__ float values[kThreads];
  const auto part = part_of_thread<kLanes, kWidth>(rows, channels);
  const std::int64_t begin = part.row * channels;
  float sum = 0.0F;
  for (int c = part.first; c < part.end; c += part.kStep) {
    const auto outputs = load<kWidth>(y + begin + c);
    const auto gradients = load<kWidth>(dy + begin + c);
    for (int i = 0; i < kWidth; ++i) sum += outputs[i] * gradients[i];
  }
  sum = sum_of_row<kLanes>(sum, values);
  for (int c = part.first; c < part.end; c += part.kStep) {
    const auto outputs = load<kWidth>(y + begin + c);
    auto floats = load<kWidth>(dy + begin + c);
    for (int i = 0; i < kWidth; ++i) floats[i] = outputs[i] * (floats[i] - sum);
    store(dx + begin + c, floats);
  }
}

}  // namespace

template <typename T>
void softmax(std::int64_t rows, int channels, const T* x, T* y, cudaStream_t stream) {
  with_rows<T>(rows, channels, rows_in_vectors<T>(channels, x, y),
               [&](auto lanes, auto width, const dim3& blocks) {
                 launch({"softmax", blocks, kThreads, stream},
                        softmax_kernel<lanes.value, width.value, T>, rows, channels, x, y);
               });
}

template <typename T>
void softmax_backward(std::int64_t rows, int channels, const T* y, const T* dy, T* dx,
                      cudaStream_t stream) {
  with_rows<T>(rows, channels, rows_in_vectors<T>(channels, y, dy, dx),
               [&](auto lanes, auto width, const dim3& blocks) {
                 launch({"softmax_backward", blocks, kThreads, stream},
                        softmax_backward_kernel<lanes.value, width.value, T>, rows, channels, y, dy,
                        dx);
               });
}

template decltype(softmax<float>) softmax<float>;
template decltype(softmax<__nv_bfloat16>) softmax<__nv_bfloat16>;
template decltype(softmax<__half>) softmax<__half>;
template decltype(softmax_backward<float>) softmax_backward<float>;
template decltype(softmax_backward<__nv_bfloat16>) softmax_backward<__nv_bfloat16>;
template decltype(softmax_backward<__half>) softmax_backward<__half>;

}  // namespace syncopate::cuda
