// The backward pass of batch norm computes the sums of the gradient, then makes one pass over the
// map. Values per channel are computed in f64, values per element in f32.
#include "models/backend/cuda/kernels/column_sums.h"
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// Computes dz = (dy + dy2) * (y > 0): the gradient of batch norm's output before the addition and
// the ReLU, whose output is y.
template <typename T>
struct MaskedGradient {
  const T* y;  // output of the ReLU; null if there is no ReLU
  const T* dy;
  const T* dy2;  // second gradient; null if there is one gradient

  template <int kWidth>
  __device__ Floats<kWidth> at(std::int64_t first) const {
    auto floats = load<kWidth>(dy + first);
    if (dy2 != nullptr) {
      const auto others = load<kWidth>(dy2 + first);
      for (int i = 0; i < kWidth; ++i) floats[i] += others[i];
    }
    if (y != nullptr) {
      const auto outputs = load<kWidth>(y + first);
      for (int i = 0; i < kWidth; ++i) floats[i] = outputs[i] > 0.0F ? floats[i] : 0.0F;
    }
    return floats;
  }
};

// Terms of batch norm's backward sums: dz and dz * xhat.
template <typename T>
struct GradientTerms {
  static constexpr int kSums = 2;
  const T* x;
  MaskedGradient<T> gradient;
  const float* mean;
  const float* inverse_stddev;
  int channels;

  template <int kWidth>
  __device__ Floats<kWidth> constants(int channel) const {
    return load_each<kWidth>(mean + channel);
  }

  template <int kWidth>
  __device__ void add(std::int64_t row, int channel, const Floats<kWidth>& means,
                      float (&sums)[kSums][kWidth]) const {
    const std::int64_t first = row * channels + channel;
    const auto gradients = gradient.template at<kWidth>(first);
    const auto inputs = load<kWidth>(x + first);
    for (int i = 0; i < kWidth; ++i) {
      sums[0][i] += gradients[i];
      sums[1][i] += gradients[i] * (inputs[i] - means[i]);
    }
  }

  // Applies inverse_stddev after the last row, since it would occupy registers during the loop.
  template <int kWidth>
  __device__ void finish(int channel, float (&sums)[kSums][kWidth]) const {
    for (int i = 0; i < kWidth; ++i) sums[1][i] *= inverse_stddev[channel + i];
  }
};

template <typename T>
struct Backward {
  const T* x;
  MaskedGradient<T> gradient;
  const float* mean;
  const float* inverse_stddev;
  const float* gamma;
  const double* sums;
  T* dx;
  T* dadded;
  int channels;

  // Computes batch norm's input gradient dx = scale * dz + slope * (x - mean) + offset.
  template <int kWidth>
  struct Constants {
    Floats<kWidth> means, scales, slopes, offsets;
  };

  template <int kWidth>
  __device__ Constants<kWidth> constants(int channel) const {
    Constants<kWidth> of;
    const double count = sums[2 * channels];
    for (int i = 0; i < kWidth; ++i) {
      const int c = channel + i;
      const double inverse = static_cast<double>(inverse_stddev[c]);
      const double scale = static_cast<double>(gamma[c]) * inverse;
      of.means[i] = mean[c];
      of.scales[i] = static_cast<float>(scale);
      of.slopes[i] = static_cast<float>(-scale * inverse * sums[channels + c] / count);
      of.offsets[i] = static_cast<float>(-scale * sums[c] / count);
    }
    return of;
  }

  template <int kWidth>
  __device__ void at(std::int64_t row, int channel, const Constants<kWidth>& of) const {
    const std::int64_t first = row * channels + channel;
    const auto gradients = gradient.template at<kWidth>(first);
    auto floats = load<kWidth>(x + first);
    for (int i = 0; i < kWidth; ++i) {
      floats[i] =
          of.scales[i] * gradients[i] + of.slopes[i] * (floats[i] - of.means[i]) + of.offsets[i];
    }
    store(dx + first, floats);
    if (dadded != nullptr) store(dadded + first, gradients);
  }
};

__global__ void __launch_bounds__(kThreads)
    parameter_gradients_kernel(int channels, const double* sums, float* dgamma, float* dbeta) {
  const int c = channel_of_thread();
  if (c >= channels) return;
  dgamma[c] = static_cast<float>(sums[channels + c]);
  dbeta[c] = static_cast<float>(sums[c]);
}

template <typename T>
MaskedGradient<T> masked_gradient(const BatchNormShape& shape, const T* y, const T* dy,
                                  const T* dy2) {
  return {shape.relu ? y : nullptr, dy, dy2};
}

}  // namespace

template <typename T>
void batch_norm_gradient_sums(const BatchNormShape& shape, const T* x, const T* y, const T* dy,
                              const T* dy2, const float* mean, const float* inverse_stddev,
                              double* sums, void* scratch, cudaStream_t stream) {
  const GradientTerms<T> terms{x, masked_gradient(shape, y, dy, dy2), mean, inverse_stddev,
                               shape.channels};
  column_sums<T>("batch_norm_gradient_sums", terms, shape.rows, shape.channels,
                 rows_in_vectors<T>(shape.channels, x, terms.gradient.y, dy, dy2), scratch, sums,
                 sums + 2 * shape.channels, stream);
}

template <typename T>
void batch_norm_backward(const BatchNormShape& shape, const T* x, const T* y, const T* dy,
                         const T* dy2, const float* mean, const float* inverse_stddev,
                         const float* gamma, const double* sums, T* dx, T* dadded,
                         cudaStream_t stream) {
  const Backward<T> backward{x,
                             masked_gradient(shape, y, dy, dy2),
                             mean,
                             inverse_stddev,
                             gamma,
                             sums,
                             dx,
                             dadded,
                             shape.channels};
  for_each_row<T>("batch_norm_backward", backward, shape.rows, shape.channels,
                  rows_in_vectors<T>(shape.channels, x, backward.gradient.y, dy, dy2, dx, dadded),
                  stream);
}

void batch_norm_parameter_gradients(const BatchNormShape& shape, const double* own_sums,
                                    float* dgamma, float* dbeta, cudaStream_t stream) {
  launch(one_thread_per_channel("batch_norm_parameter_gradients", shape.channels, stream),
         parameter_gradients_kernel, shape.channels, own_sums, dgamma, dbeta);
}

// Instantiates batch norm's backward functions for float, __nv_bfloat16 and __half.
template void batch_norm_gradient_sums(const BatchNormShape&, const float*, const float*,
                                       const float*, const float*, const float*, const float*,
                                       double*, void*, cudaStream_t);
template void batch_norm_backward(const BatchNormShape&, const float*, const float*, const float*,
                                  const float*, const float*, const float*, const float*,
                                  const double*, float*, float*, cudaStream_t);
template void batch_norm_gradient_sums(const BatchNormShape&, const __nv_bfloat16*,
                                       const __nv_bfloat16*, const __nv_bfloat16*,
                                       const __nv_bfloat16*, const float*, const float*, double*,
                                       void*, cudaStream_t);
template void batch_norm_backward(const BatchNormShape&, const __nv_bfloat16*, const __nv_bfloat16*,
                                  const __nv_bfloat16*, const __nv_bfloat16*, const float*,
                                  const float*, const float*, const double*, __nv_bfloat16*,
                                  __nv_bfloat16*, cudaStream_t);
template void batch_norm_gradient_sums(const BatchNormShape&, const __half*, const __half*,
                                       const __half*, const __half*, const float*, const float*,
                                       double*, void*, cudaStream_t);
template void batch_norm_backward(const BatchNormShape&, const __half*, const __half*,
                                  const __half*, const __half*, const float*, const float*,
                                  const float*, const double*, __half*, __half*, cudaStream_t);

}  // namespace syncopate::cuda
