// The forward pass of batch norm computes the sums over the rows, the moments per channel (in f64),
// and the output in one pass over the map (in f32).
#include <cmath>
#include <limits>

#include "models/backend/cuda/kernels/column_sums.h"
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// Terms of batch norm's forward sums: x - shift and its square.
template <typename T>
struct SumTerms : PlainTerms {
  static constexpr int kSums = 2;
  static constexpr int kRowsAtOnce = 4;
  const T* x;
  const float* shift;

  template <int kWidth>
  __device__ Floats<kWidth> constants(int channel) const {
    return load<kWidth>(shift + channel);
  }

  template <int kWidth>
  __device__ Pack<T, kWidth> read(std::int64_t first) const {
    return load_pack<kWidth>(x + first);
  }

  template <int kWidth>
  __device__ void add(std::int64_t /*first*/, const Pack<T, kWidth>& inputs,
                      const Floats<kWidth>& shifts, float (&sums)[kSums][kWidth]) const {
    const auto floats = to_floats(inputs);
    for (int i = 0; i < kWidth; ++i) {
      const float shifted = floats[i] - shifts[i];
      sums[0][i] += shifted;
      sums[1][i] += shifted * shifted;
    }
  }
};

template <typename T, bool kAdd>
struct Apply {
  static constexpr int kRowsAtOnce = kAdd ? 2 : 4;
  const T* x;
  const float* mean;
  const float* inverse_stddev;
  const float* gamma;
  const float* beta;
  const T* added;
  T* y;
  std::uint8_t* mask;  // null: not wanted
  float lower_bound;   // of y: 0 with ReLU; a flag would make nvcc compile the loop twice

  template <int kWidth>
  struct Constants {
    Floats<kWidth> means, scales, shifts;
  };

  template <int kWidth>
  __device__ Constants<kWidth> constants(int channel) const {
    Constants<kWidth> of;
    of.means = load<kWidth>(mean + channel);
    of.scales = load<kWidth>(gamma + channel);
    of.shifts = load<kWidth>(beta + channel);
    const auto inverses = load<kWidth>(inverse_stddev + channel);
    for (int i = 0; i < kWidth; ++i) of.scales[i] *= inverses[i];
    return of;
  }

  template <int kWidth>
  struct Inputs {
    Pack<T, kWidth> x, added;
  };

  template <int kWidth>
  __device__ Inputs<kWidth> read(std::int64_t first) const {
    Inputs<kWidth> inputs{};
    inputs.x = load_pack<kWidth>(x + first);
    if constexpr (kAdd) inputs.added = load_pack<kWidth>(added + first);
    return inputs;
  }

  template <int kWidth>
  __device__ void write(std::int64_t first, const Constants<kWidth>& of,
                        const Inputs<kWidth>& inputs) const {
    auto floats = to_floats(inputs.x);
    // The mean is subtracted before scaling, because x and the mean may be large compared with
    // their difference.
    for (int i = 0; i < kWidth; ++i) {
      floats[i] = (floats[i] - of.means[i]) * of.scales[i] + of.shifts[i];
    }
    if constexpr (kAdd) {
      const auto others = to_floats(inputs.added);
      for (int i = 0; i < kWidth; ++i) floats[i] += others[i];
    }
    for (int i = 0; i < kWidth; ++i) {
      if (floats[i] < lower_bound) floats[i] = lower_bound;  // this comparison lets NaN pass
    }
    store(y + first, floats);
    if (mask == nullptr) return;
    unsigned bits = 0;
    for (int i = 0; i < kWidth; ++i) {
      if (floats[i] > 0.0F) bits |= 1U << i;
    }
    mask[first / kWidth] = static_cast<std::uint8_t>(bits);
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
  column_sums<T>("batch_norm_sums", SumTerms<T>{{}, x, shift}, shape.rows, shape.channels,
                 rows_in_vectors<T>(shape.channels, x, shift), scratch, sums,
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
                      const T* added, T* y, std::uint8_t* mask, cudaStream_t stream) {
  const bool vectors =
      rows_in_vectors<T>(shape.channels, x, mean, inverse_stddev, gamma, beta, added, y);
  if (mask != nullptr) check_whole_packs<T>(shape.channels, vectors);
  const float lower_bound = shape.relu ? 0.0F : -std::numeric_limits<float>::infinity();
  with_flag(added != nullptr, [&](auto adds) {
    const Apply<T, adds.value> apply{x,     mean, inverse_stddev, gamma,      beta,
                                     added, y,    mask,           lower_bound};
    for_each_row<T>("batch_norm_apply", apply, shape.rows, shape.channels, vectors, stream);
  });
}

template decltype(batch_norm_sums<float>) batch_norm_sums<float>;
template decltype(batch_norm_sums<__nv_bfloat16>) batch_norm_sums<__nv_bfloat16>;
template decltype(batch_norm_sums<__half>) batch_norm_sums<__half>;
template decltype(batch_norm_apply<float>) batch_norm_apply<float>;
template decltype(batch_norm_apply<__nv_bfloat16>) batch_norm_apply<__nv_bfloat16>;
template decltype(batch_norm_apply<__half>) batch_norm_apply<__half>;

}  // namespace syncopate::cuda
