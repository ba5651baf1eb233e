// The backward pass of batch norm computes the sums of the gradient, the coefficients of each
// channel from them (in f64), and the gradients of the maps in one pass (in f32).
#include "models/backend/cuda/kernels/column_sums.h"
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

// The maps that both passes read, and dz, dy + dy2 where the mask is set: the gradient of batch
// norm's output before the addition and the ReLU.
template <typename T, bool kMask, bool kTwo>
struct GradientMaps {
  static constexpr int kRowsAtOnce = 2;  // at most 6 packs of 16 bytes
  using Element = T;
  const T* x;
  const std::uint8_t* mask;  // a byte for a pack; unused if not kMask
  const T* dy;
  const T* dy2;  // second gradient; unused if not kTwo

  template <int kWidth>
  struct Inputs {
    Pack<T, kWidth> x, dy, dy2;
    std::uint8_t mask;
  };

  template <int kWidth>
  __device__ Inputs<kWidth> read(std::int64_t first) const {
    Inputs<kWidth> inputs{};
    inputs.x = load_pack<kWidth>(x + first);
    if constexpr (kMask) inputs.mask = mask[first / kWidth];
    inputs.dy = load_pack<kWidth>(dy + first);
    if constexpr (kTwo) inputs.dy2 = load_pack<kWidth>(dy2 + first);
    return inputs;
  }

  template <int kWidth>
  __device__ static Floats<kWidth> masked(const Inputs<kWidth>& inputs) {
    auto floats = to_floats(inputs.dy);
    if constexpr (kTwo) {
      const auto others = to_floats(inputs.dy2);
      for (int i = 0; i < kWidth; ++i) floats[i] += others[i];
    }
    if constexpr (kMask) {
      for (int i = 0; i < kWidth; ++i) floats[i] = (inputs.mask >> i & 1) != 0 ? floats[i] : 0.0F;
    }
    return floats;
  }
};

// Terms of batch norm's backward sums: dz and dz * xhat. Stores dz where it is wanted.
template <typename Maps>
struct GradientTerms : Maps {
  using T = typename Maps::Element;
  static constexpr int kSums = 2;
  const float* mean;
  const float* inverse_stddev;
  T* dz;

  template <int kWidth>
  __device__ Floats<kWidth> constants(int channel) const {
    return load<kWidth>(mean + channel);
  }

  template <int kWidth, typename Inputs>
  __device__ void add(std::int64_t first, const Inputs& inputs, const Floats<kWidth>& means,
                      float (&sums)[kSums][kWidth]) const {
    auto gradients = Maps::masked(inputs);
    // dz is not a template parameter, because the branch comes after all loads. The sums are made
    // of the rounded dz, because the second pass reads this.
    if (dz != nullptr) {
      store(dz + first, gradients);
      for (int i = 0; i < kWidth; ++i) gradients[i] = to_float(from_float<T>(gradients[i]));
    }
    const auto floats = to_floats(inputs.x);
    for (int i = 0; i < kWidth; ++i) {
      sums[0][i] += gradients[i];
      sums[1][i] += gradients[i] * (floats[i] - means[i]);
    }
  }

  // Applies inverse_stddev after the last row, since it would occupy registers during the loop.
  template <int kWidth>
  __device__ void finish(int channel, float (&sums)[kSums][kWidth]) const {
    const auto inverses = load<kWidth>(inverse_stddev + channel);
    for (int i = 0; i < kWidth; ++i) sums[1][i] *= inverses[i];
  }
};

// Computes batch norm's input gradient dx = scale * dz + slope * x + offset.
template <typename Maps>
struct Backward : Maps {
  using T = typename Maps::Element;
  const float* coefficients;  // [3][channels]: scales, slopes, offsets
  T* dx;
  int channels;

  template <int kWidth>
  struct Constants {
    Floats<kWidth> scales, slopes, offsets;
  };

  template <int kWidth>
  __device__ Constants<kWidth> constants(int channel) const {
    const float* const scales = coefficients + channel;
    return {load<kWidth>(scales), load<kWidth>(scales + channels),
            load<kWidth>(scales + 2 * channels)};
  }

  template <int kWidth, typename Inputs>
  __device__ void write(std::int64_t first, const Constants<kWidth>& of,
                        const Inputs& inputs) const {
    const auto gradients = Maps::masked(inputs);
    auto floats = to_floats(inputs.x);
    for (int i = 0; i < kWidth; ++i) {
      floats[i] = of.scales[i] * gradients[i] + (of.slopes[i] * floats[i] + of.offsets[i]);
    }
    store(dx + first, floats);
  }
};

// One thread per channel divides in f64, so that the threads of the map read three f32 numbers.
__global__ void __launch_bounds__(kThreads)
    finish_gradient_kernel(int channels, const double* own_sums, const double* sums,
                           const float* mean, const float* inverse_stddev, const float* gamma,
                           float* dgamma, float* dbeta, float* coefficients) {
  const int c = channel_of_thread();
  if (c >= channels) return;
  dgamma[c] = static_cast<float>(own_sums[channels + c]);
  dbeta[c] = static_cast<float>(own_sums[c]);
  const double count = sums[2 * channels];
  const double inverse = static_cast<double>(inverse_stddev[c]);
  const double scale = static_cast<double>(gamma[c]) * inverse;
  const auto slope = static_cast<float>(-scale * inverse * sums[channels + c] / count);
  coefficients[c] = static_cast<float>(scale);
  coefficients[channels + c] = slope;
  // The offset contains -slope * mean. It is computed from the rounded slope, so that slope * x +
  // offset is as exact as slope * (x - mean) even if the mean is large.
  coefficients[2 * channels + c] = static_cast<float>(
      -scale * sums[c] / count - static_cast<double>(slope) * static_cast<double>(mean[c]));
}

// Calls body(GradientMaps) with the maps that the caller has.
template <typename T, typename Body>
void with_maps(const T* x, const std::uint8_t* mask, const T* dy, const T* dy2, const Body& body) {
  with_flag(mask != nullptr, [&](auto masks) {
    with_flag(dy2 != nullptr, [&](auto two) {
      body(GradientMaps<T, masks.value, two.value>{x, mask, dy, dy2});
    });
  });
}

}  // namespace

template <typename T>
void batch_norm_gradient_sums(const BatchNormShape& shape, const T* x, const std::uint8_t* mask,
                              const T* dy, const T* dy2, const float* mean,
                              const float* inverse_stddev, T* dz, double* sums, void* scratch,
                              cudaStream_t stream) {
  const bool vectors = rows_in_vectors<T>(shape.channels, x, dy, dy2, mean, inverse_stddev, dz);
  if (mask != nullptr) check_whole_packs<T>(shape.channels, vectors);
  with_maps(x, mask, dy, dy2, [&](const auto& maps) {
    const GradientTerms<std::decay_t<decltype(maps)>> terms{maps, mean, inverse_stddev, dz};
    column_sums<T>("batch_norm_gradient_sums", terms, shape.rows, shape.channels, vectors, scratch,
                   sums, sums + 2 * shape.channels, stream);
  });
}

void batch_norm_finish_gradient(const BatchNormShape& shape, const double* own_sums,
                                const double* sums, const float* mean, const float* inverse_stddev,
                                const float* gamma, float* dgamma, float* dbeta,
                                float* coefficients, cudaStream_t stream) {
  launch(one_thread_per_channel("batch_norm_finish_gradient", shape.channels, stream),
         finish_gradient_kernel, shape.channels, own_sums, sums, mean, inverse_stddev, gamma,
         dgamma, dbeta, coefficients);
}

template <typename T>
void batch_norm_backward(const BatchNormShape& shape, const T* x, const std::uint8_t* mask,
                         const T* dy, const T* dy2, const float* coefficients, T* dx,
                         cudaStream_t stream) {
  const bool vectors = rows_in_vectors<T>(shape.channels, x, dy, dy2, coefficients, dx);
  if (mask != nullptr) check_whole_packs<T>(shape.channels, vectors);
  with_maps(x, mask, dy, dy2, [&](const auto& maps) {
    const Backward<std::decay_t<decltype(maps)>> backward{maps, coefficients, dx, shape.channels};
    for_each_row<T>("batch_norm_backward", backward, shape.rows, shape.channels, vectors, stream);
  });
}

template decltype(batch_norm_gradient_sums<float>) batch_norm_gradient_sums<float>;
template decltype(batch_norm_gradient_sums<__nv_bfloat16>) batch_norm_gradient_sums<__nv_bfloat16>;
template decltype(batch_norm_gradient_sums<__half>) batch_norm_gradient_sums<__half>;
template decltype(batch_norm_backward<float>) batch_norm_backward<float>;
template decltype(batch_norm_backward<__nv_bfloat16>) batch_norm_backward<__nv_bfloat16>;
template decltype(batch_norm_backward<__half>) batch_norm_backward<__half>;

}  // namespace syncopate::cuda
