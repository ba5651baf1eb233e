// Element by element in packs of 16 bytes: normalisation of samples, conversions, activations,
// sums, products.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/elements.h"
#include "models/backend/cuda/kernels/pack.h"
#include "models/graph/activation.h"

namespace syncopate::cuda {
namespace {

template <typename A, typename B>
using Wider = std::conditional_t<(sizeof(A) > sizeof(B)), A, B>;

template <typename From, typename T>
struct Normalise {
  const From* x;
  float unit;
  const float* mean;
  const float* stddev;
  T* y;
  int channels;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    auto floats = load<kWidth>(x + first);
    int channel = static_cast<int>(first % channels);
    for (int i = 0; i < kWidth; ++i) {
      floats[i] = (floats[i] / unit - mean[channel]) / stddev[channel];
      if (++channel == channels) channel = 0;
    }
    store(y + first, floats);
  }
};

// y = function(x), element by element.
template <typename From, typename To, typename Function>
struct OfOne {
  const From* x;
  To* y;
  Function function;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    auto floats = load<kWidth>(x + first);
    for (int i = 0; i < kWidth; ++i) floats[i] = function(floats[i]);
    store(y + first, floats);
  }
};

// y = function(a, b), element by element.
template <typename T, typename Function>
struct OfTwo {
  const T* a;
  const T* b;
  T* y;
  Function function;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    auto floats = load<kWidth>(a + first);
    const auto others = load<kWidth>(b + first);
    for (int i = 0; i < kWidth; ++i) floats[i] = function(floats[i], others[i]);
    store(y + first, floats);
  }
};

struct Identity {
  __device__ float operator()(float x) const { return x; }
};
struct Relu {
  __device__ float operator()(float x) const { return x < 0.0F ? 0.0F : x; }  // lets NaN pass
};
struct ReluGradient {
  __device__ float operator()(float y, float dy) const { return y > 0.0F ? dy : 0.0F; }
};
struct Addition {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Multiplication {
  __device__ float operator()(float a, float b) const { return a * b; }
};

__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
// The normal distribution function, which GELU multiplies by x.
__device__ inline float normal(float x) { return 0.5F * (1.0F + erff(x * 0.707106781F)); }

// The activations and their derivatives; models/graph/activation.h.
__device__ inline float value_of(functions::Sigmoid /*f*/, float x) { return sigmoid(x); }
__device__ inline float slope_of(functions::Sigmoid /*f*/, float x) {
  const float y = sigmoid(x);
  return y * (1.0F - y);
}

__device__ inline float value_of(functions::Tanh /*f*/, float x) { return tanhf(x); }
__device__ inline float slope_of(functions::Tanh /*f*/, float x) {
  const float y = tanhf(x);
  return 1.0F - y * y;
}

__device__ inline float value_of(functions::Gelu /*f*/, float x) { return x * normal(x); }
__device__ inline float slope_of(functions::Gelu /*f*/, float x) {
  return normal(x) + x * 0.398942280F * expf(-0.5F * x * x);
}

__device__ inline float value_of(functions::Silu /*f*/, float x) { return x * sigmoid(x); }
__device__ inline float slope_of(functions::Silu /*f*/, float x) {
  const float y = sigmoid(x);
  return y * (1.0F + x * (1.0F - y));
}

// The comparisons of the functions below let NaN pass.
__device__ inline float value_of(functions::HardSwish /*f*/, float x) {
  float gate = x + 3.0F;
  gate = gate < 0.0F ? 0.0F : gate;
  gate = gate > 6.0F ? 6.0F : gate;
  return x * gate * (1.0F / 6.0F);
}
__device__ inline float slope_of(functions::HardSwish /*f*/, float x) {
  if (x < -3.0F) return 0.0F;
  return x > 3.0F ? 1.0F : x * (1.0F / 3.0F) + 0.5F;
}

__device__ inline float value_of(functions::Relu6 /*f*/, float x) {
  const float positive = x < 0.0F ? 0.0F : x;
  return positive > 6.0F ? 6.0F : positive;
}
__device__ inline float slope_of(functions::Relu6 /*f*/, float x) {
  return x > 0.0F && x < 6.0F ? 1.0F : 0.0F;
}

__device__ inline float value_of(functions::HardSigmoid /*f*/, float x) {
  const float positive = x + 3.0F < 0.0F ? 0.0F : x + 3.0F;
  return (positive > 6.0F ? 6.0F : positive) * (1.0F / 6.0F);
}
__device__ inline float slope_of(functions::HardSigmoid /*f*/, float x) {
  return x > -3.0F && x < 3.0F ? 1.0F / 6.0F : 0.0F;
}

__device__ inline float value_of(functions::LeakyRelu f, float x) {
  return x > 0.0F ? x : f.slope * x;
}
__device__ inline float slope_of(functions::LeakyRelu f, float x) {
  return x > 0.0F ? 1.0F : f.slope;
}

__device__ inline float value_of(functions::Clip f, float x) {
  const float y = x < f.low ? f.low : x;
  return y > f.high ? f.high : y;
}
__device__ inline float slope_of(functions::Clip f, float x) {
  return x >= f.low && x <= f.high ? 1.0F : 0.0F;
}

__device__ inline float value_of(functions::Linear f, float x) { return x * f.factor + f.offset; }
__device__ inline float slope_of(functions::Linear f, float /*x*/) { return f.factor; }

template <typename Function>
struct ActivationValue {
  Function function;
  __device__ float operator()(float x) const { return value_of(function, x); }
};
template <typename Function>
struct ActivationGradient {
  Function function;
  __device__ float operator()(float x, float dy) const { return dy * slope_of(function, x); }
};

template <typename From, typename To, typename Function>
void apply(const char* name, const Function& function, const From* x, To* y, std::int64_t count,
           cudaStream_t stream) {
  for_each_element<Wider<From, To>>(name, OfOne<From, To, Function>{x, y, function}, count,
                                    aligned(x, y), stream);
}
template <typename T, typename Function>
void apply(const char* name, const Function& function, const T* a, const T* b, T* y,
           std::int64_t count, cudaStream_t stream) {
  for_each_element<T>(name, OfTwo<T, Function>{a, b, y, function}, count, aligned(a, b, y), stream);
}

}  // namespace

template <typename From, typename T>
void normalise(const From* x, float unit, const float* mean, const float* stddev, T* y,
               std::int64_t count, int channels, cudaStream_t stream) {
  for_each_element<Wider<From, T>>("normalise",
                                   Normalise<From, T>{x, unit, mean, stddev, y, channels}, count,
                                   aligned(x, y), stream);
}

template <typename From, typename To>
void convert(const From* x, To* y, std::int64_t count, cudaStream_t stream) {
  apply("convert", Identity{}, x, y, count, stream);
}

template <typename T>
void relu_forward(const T* x, T* y, std::int64_t count, cudaStream_t stream) {
  apply("relu_forward", Relu{}, x, y, count, stream);
}

template <typename T>
void relu_backward(const T* y, const T* dy, T* dx, std::int64_t count, cudaStream_t stream) {
  apply("relu_backward", ReluGradient{}, y, dy, dx, count, stream);
}

template <typename T>
void add(const T* a, const T* b, T* y, std::int64_t count, cudaStream_t stream) {
  apply("add", Addition{}, a, b, y, count, stream);
}

template <typename T>
void multiply(const T* a, const T* b, T* y, std::int64_t count, cudaStream_t stream) {
  apply("multiply", Multiplication{}, a, b, y, count, stream);
}

template <typename T>
void activate_forward(const ActivationOp& op, const T* x, T* y, std::int64_t count,
                      cudaStream_t stream) {
  with_function(op, [&]<typename Function>(Function function) {
    apply("activate_forward", ActivationValue<Function>{function}, x, y, count, stream);
  });
}

template <typename T>
void activate_backward(const ActivationOp& op, const T* x, const T* dy, T* dx, std::int64_t count,
                       cudaStream_t stream) {
  with_function(op, [&]<typename Function>(Function function) {
    apply("activate_backward", ActivationGradient<Function>{function}, x, dy, dx, count, stream);
  });
}

template decltype(normalise<std::uint8_t, float>) normalise<std::uint8_t, float>;
template decltype(normalise<std::uint8_t, __nv_bfloat16>) normalise<std::uint8_t, __nv_bfloat16>;
template decltype(normalise<std::uint8_t, __half>) normalise<std::uint8_t, __half>;
template decltype(normalise<std::uint16_t, float>) normalise<std::uint16_t, float>;
template decltype(normalise<std::uint16_t, __nv_bfloat16>) normalise<std::uint16_t, __nv_bfloat16>;
template decltype(normalise<std::uint16_t, __half>) normalise<std::uint16_t, __half>;
template decltype(normalise<float, float>) normalise<float, float>;
template decltype(normalise<float, __nv_bfloat16>) normalise<float, __nv_bfloat16>;
template decltype(normalise<float, __half>) normalise<float, __half>;
template decltype(convert<float, float>) convert<float, float>;
template decltype(convert<__nv_bfloat16, float>) convert<__nv_bfloat16, float>;
template decltype(convert<__half, float>) convert<__half, float>;
template decltype(convert<float, __nv_bfloat16>) convert<float, __nv_bfloat16>;
template decltype(convert<__nv_bfloat16, __nv_bfloat16>) convert<__nv_bfloat16, __nv_bfloat16>;
template decltype(convert<__half, __nv_bfloat16>) convert<__half, __nv_bfloat16>;
template decltype(convert<float, __half>) convert<float, __half>;
template decltype(convert<__nv_bfloat16, __half>) convert<__nv_bfloat16, __half>;
template decltype(convert<__half, __half>) convert<__half, __half>;
template decltype(relu_forward<float>) relu_forward<float>;
template decltype(relu_forward<__nv_bfloat16>) relu_forward<__nv_bfloat16>;
template decltype(relu_forward<__half>) relu_forward<__half>;
template decltype(relu_backward<float>) relu_backward<float>;
template decltype(relu_backward<__nv_bfloat16>) relu_backward<__nv_bfloat16>;
template decltype(relu_backward<__half>) relu_backward<__half>;
template decltype(add<float>) add<float>;
template decltype(add<__nv_bfloat16>) add<__nv_bfloat16>;
template decltype(add<__half>) add<__half>;
template decltype(multiply<float>) multiply<float>;
template decltype(multiply<__nv_bfloat16>) multiply<__nv_bfloat16>;
template decltype(multiply<__half>) multiply<__half>;
template decltype(activate_forward<float>) activate_forward<float>;
template decltype(activate_forward<__nv_bfloat16>) activate_forward<__nv_bfloat16>;
template decltype(activate_forward<__half>) activate_forward<__half>;
template decltype(activate_backward<float>) activate_backward<float>;
template decltype(activate_backward<__nv_bfloat16>) activate_backward<__nv_bfloat16>;
template decltype(activate_backward<__half>) activate_backward<__half>;

}  // namespace syncopate::cuda
