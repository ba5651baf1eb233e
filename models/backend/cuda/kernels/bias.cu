// Adds a bias to every row of a map, and sums the rows of a gradient to the gradient of the bias.
#include "models/backend/cuda/kernels/column_sums.h"
#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {
namespace {

template <typename T>
struct AddBias {
  static constexpr int kRowsAtOnce = 4;
  T* y;
  const float* bias;
  bool relu;

  template <int kWidth>
  __device__ Floats<kWidth> constants(int channel) const {
    return load<kWidth>(bias + channel);
  }

  template <int kWidth>
  __device__ Pack<T, kWidth> read(std::int64_t first) const {
    return load_pack<kWidth>(y + first);
  }

  template <int kWidth>
  __device__ void write(std::int64_t first, const Floats<kWidth>& biases,
                        const Pack<T, kWidth>& inputs) const {
    auto floats = to_floats(inputs);
    for (int i = 0; i < kWidth; ++i) {
      floats[i] += biases[i];
      if (relu && floats[i] < 0.0F) floats[i] = 0.0F;
    }
    store(y + first, floats);
  }
};

template <typename T>
struct BiasGradientTerms : PlainTerms {
  static constexpr int kSums = 1;
  static constexpr int kRowsAtOnce = 4;
  const T* dy;

  template <int kWidth>
  __device__ Pack<T, kWidth> read(std::int64_t first) const {
    return load_pack<kWidth>(dy + first);
  }

  template <int kWidth>
  __device__ void add(std::int64_t /*first*/, const Pack<T, kWidth>& gradients, NoConstants,
                      float (&sums)[kSums][kWidth]) const {
    const auto floats = to_floats(gradients);
    for (int i = 0; i < kWidth; ++i) sums[0][i] += floats[i];
  }
};

}  // namespace

template <typename T>
void add_bias(T* y, const float* bias, std::int64_t rows, int channels, bool relu,
              cudaStream_t stream) {
  for_each_row<T>("add_bias", AddBias<T>{y, bias, relu}, rows, channels,
                  rows_in_vectors<T>(channels, y, bias), stream);
}

template <typename T>
void bias_gradient(const T* dy, float* db, std::int64_t rows, int channels, void* scratch,
                   cudaStream_t stream) {
  column_sums<T>("bias_gradient", BiasGradientTerms<T>{{}, dy}, rows, channels,
                 rows_in_vectors<T>(channels, dy), scratch, db, nullptr, stream);
}

std::int64_t bias_gradient_scratch(std::int64_t rows, int channels) {
  return column_sums_scratch(rows, channels, 1);
}

template decltype(add_bias<float>) add_bias<float>;
template decltype(add_bias<__nv_bfloat16>) add_bias<__nv_bfloat16>;
template decltype(add_bias<__half>) add_bias<__half>;
template decltype(bias_gradient<float>) bias_gradient<float>;
template decltype(bias_gradient<__nv_bfloat16>) bias_gradient<__nv_bfloat16>;
template decltype(bias_gradient<__half>) bias_gradient<__half>;

}  // namespace syncopate::cuda
