// The forward pass of batch norm computes the sums over the rows, the moments per channel (in f64),
// and the output in one pass over the map (in f32).
#include <cmath>

#include "models/backend/cuda/kernels/column_sums.h"
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// Terms of batch norm's forward sums: x - shift and its square.
template <typename T>
struct SumTerms {
  static constexpr int kSums = 2;
  const T* x;
  const float* shift;
  int channels;

  template <int kWidth>
  __device__ Floats<kWidth> constants(int channel) const {
    return load_each<kWidth>(shift + channel);
  }

  template <int kWidth>
  __device__ void add(std::int64_t row, int channel, const Floats<kWidth>& shifts,
                      float (&sums)[kSums][kWidth]) const {
    const auto inputs = load<kWidth>(x + row * channels + channel);
    for (int i = 0; i < kWidth; ++i) {
      const float shifted = inputs[i] - shifts[i];
      sums[0][i] += shifted;
      sums[1][i] += shifted * shifted;
    }
  }

  template <int kWidth>
  __device__ void finish(int, float (&)[kSums][kWidth]) const {}
};

template <typename T>
struct Apply {
  const T* x;
  const float* mean;
  const float* inverse_stddev;
  const float* gamma;
  const float* beta;
  const T* added;
  T* y;
  int channels;
  bool relu;

  template <int kWidth>
  struct Constants {
    Floats<kWidth> means, scales, shifts;
  };

  template <int kWidth>
  __device__ Constants<kWidth> constants(int channel) const {
    Constants<kWidth> of;
    of.means = load_each<kWidth>(mean + channel);
    of.scales = load_each<kWidth>(gamma + channel);
    of.shifts = load_each<kWidth>(beta + channel);
    for (int i = 0; i < kWidth; ++i) of.scales[i] *= inverse_stddev[channel + i];
    return of;
  }

  template <int kWidth>
  __device__ void at(std::int64_t row, int channel, const Constants<kWidth>& of) const {
    const std::int64_t first = row * channels + channel;
    auto floats = load<kWidth>(x + first);
    // The mean is subtracted before scaling, because x and the mean may be large compared with
    // their difference.
    for (int i = 0; i < kWidth; ++i) {
      floats[i] = (floats[i] - of.means[i]) * of.scales[i] + of.shifts[i];
    }
    if (added != nullptr) {
      const auto others = load<kWidth>(added + first);
      for (int i = 0; i < kWidth; ++i) floats[i] += others[i];
    }
    for (int i = 0; i < kWidth; ++i) {
      if (relu && floats[i] < 0.0F) floats[i] = 0.0F;  // this comparison lets NaN pass
    }
    store(y + first, floats);
  }
};

__global__ void __launch_bounds__(kThreads)
    shift_sums_kernel(BatchNormShape shape, const float* x_sums, const float* squares,
                      const float* shift, double* sums) {
  const int c = channel_of_thread();
  if (c >= shape.channels) return;
  const double rows = static_cast<double>(shape.rows);
  const double by = static_cast<double>(shift[c]);
  const double sum = static_cast<double>(x_sums[c]);
  sums[c] = sum - rows * by;
  sums[shape.channels + c] = static_cast<double>(squares[c]) - by * (2.0 * sum - rows * by);
  if (c == 0) sums[2 * shape.channels] = rows;
}

__global__ void __launch_bounds__(kThreads)
    finish_kernel(BatchNormShape shape, const double* sums, const float* shift, float* mean,
                  float* inverse_stddev, float* running_mean, float* running_variance) {
  const int c = channel_of_thread();
  const double count = sums[2 * shape.channels];
  // If no replica has a sample, batch norm's running statistics keep their values.
  if (c >= shape.channels || !(count > 0.0)) return;
  const double offset = sums[c] / count;  // mean - shift: sums[c] is the sum of x - shift[c]
  const double spread = sums[shape.channels + c] / count - offset * offset;
  const double variance = spread > 0.0 ? spread : spread == spread ? 0.0 : spread;  // lets NaN pass
  const double batch_mean = static_cast<double>(shift[c]) + offset;
  const double unbiased = count > 1.0 ? variance * count / (count - 1.0) : variance;
  const double momentum = static_cast<double>(shape.momentum);
  mean[c] = static_cast<float>(batch_mean);
  inverse_stddev[c] =
      static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(shape.epsilon)));
  running_mean[c] = static_cast<float>((1.0 - momentum) * static_cast<double>(running_mean[c]) +
                                       momentum * batch_mean);
  running_variance[c] = static_cast<float>(
      (1.0 - momentum) * static_cast<double>(running_variance[c]) + momentum * unbiased);
}

__global__ void __launch_bounds__(kThreads)
    inverse_stddev_kernel(BatchNormShape shape, const float* variance, float* inverse_stddev) {
  const int c = channel_of_thread();
  if (c >= shape.channels) return;
  inverse_stddev[c] = static_cast<float>(
      1.0 / std::sqrt(static_cast<double>(variance[c]) + static_cast<double>(shape.epsilon)));
}

}  // namespace

std::int64_t batch_norm_scratch(const BatchNormShape& shape) {
  return column_sums_scratch(shape.rows, shape.channels, 2);
}

template <typename T>
void batch_norm_sums(const BatchNormShape& shape, const T* x, const float* shift, double* sums,
                     void* scratch, cudaStream_t stream) {
  column_sums<T>("batch_norm_sums", SumTerms<T>{x, shift, shape.channels}, shape.rows,
                 shape.channels, rows_in_vectors<T>(shape.channels, x), scratch, sums,
                 sums + 2 * shape.channels, stream);
}

void batch_norm_shift_sums(const BatchNormShape& shape, const float* x_sums, const float* squares,
                           const float* shift, double* sums, cudaStream_t stream) {
  launch(one_thread_per_channel("batch_norm_shift_sums", shape.channels, stream), shift_sums_kernel,
         shape, x_sums, squares, shift, sums);
}

void batch_norm_finish(const BatchNormShape& shape, const double* sums, const float* shift,
                       float* mean, float* inverse_stddev, float* running_mean,
                       float* running_variance, cudaStream_t stream) {
  launch(one_thread_per_channel("batch_norm_finish", shape.channels, stream), finish_kernel, shape,
         sums, shift, mean, inverse_stddev, running_mean, running_variance);
}

void batch_norm_inverse_stddev(const BatchNormShape& shape, const float* running_variance,
                               float* inverse_stddev, cudaStream_t stream) {
  launch(one_thread_per_channel("batch_norm_inverse_stddev", shape.channels, stream),
         inverse_stddev_kernel, shape, running_variance, inverse_stddev);
}

template <typename T>
void batch_norm_apply(const BatchNormShape& shape, const T* x, const float* mean,
                      const float* inverse_stddev, const float* gamma, const float* beta,
                      const T* added, T* y, cudaStream_t stream) {
  const Apply<T> apply{x, mean, inverse_stddev, gamma, beta, added, y, shape.channels, shape.relu};
  for_each_row<T>("batch_norm_apply", apply, shape.rows, shape.channels,
                  rows_in_vectors<T>(shape.channels, x, added, y), stream);
}

// Instantiates batch norm's forward functions for float, __nv_bfloat16 and __half.
template void batch_norm_sums(const BatchNormShape&, const float*, const float*, double*, void*,
                              cudaStream_t);
template void batch_norm_apply(const BatchNormShape&, const float*, const float*, const float*,
                               const float*, const float*, const float*, float*, cudaStream_t);
template void batch_norm_sums(const BatchNormShape&, const __nv_bfloat16*, const float*, double*,
                              void*, cudaStream_t);
template void batch_norm_apply(const BatchNormShape&, const __nv_bfloat16*, const float*,
                               const float*, const float*, const float*, const __nv_bfloat16*,
                               __nv_bfloat16*, cudaStream_t);
template void batch_norm_sums(const BatchNormShape&, const __half*, const float*, double*, void*,
                              cudaStream_t);
template void batch_norm_apply(const BatchNormShape&, const __half*, const float*, const float*,
                               const float*, const float*, const __half*, __half*, cudaStream_t);

}  // namespace syncopate::cuda
