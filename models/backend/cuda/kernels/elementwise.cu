// Element by element in packs of 16 bytes: normalisation of samples, conversions, activations,
// sums, products.
#include <algorithm>
#include <cmath>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"
#include "models/graph/activation.h"

namespace syncopate::cuda {
namespace {

// The kernel of element-wise operations. Operation provides at<kWidth>(first element).
template <int kWidth, typename Operation>
__global__ void __launch_bounds__(kThreads)
    elementwise_kernel(Operation operation, std::int64_t count) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t packs = count / kWidth;
  for (std::int64_t pack = thread; pack < packs; pack += threads) {
    operation.template at<kWidth>(pack * kWidth);
  }
  // The elements after the last whole pack are fewer than the threads of a block: one per thread.
  const std::int64_t last = packs * kWidth + thread;
  if (kWidth > 1 && last < count) operation.template at<1>(last);
}

// Applies an operation to all elements. Wide is the larger of the types that the operation moves.
template <typename Wide, typename Operation>
void for_each_element(const char* name, const Operation& operation, std::int64_t count,
                      bool vectors, cudaStream_t stream) {
  if (count == 0) return;
  with_width<Wide>(vectors, [&](auto width) {
    const std::int64_t packs = (count + width - 1) / width;
    const std::int64_t blocks =
        std::min<std::int64_t>((packs + kThreads - 1) / kThreads, kMostBlocks);
    launch({name, dim3(static_cast<unsigned>(blocks)), kThreads, stream},
           elementwise_kernel<width.value, Operation>, operation, count);
  });
}

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

template <typename From, typename To>
struct Convert {
  const From* x;
  To* y;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    store(y + first, load<kWidth>(x + first));
  }
};

template <typename T>
struct ReluForward {
  const T* x;
  T* y;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    auto floats = load<kWidth>(x + first);
    // This comparison lets NaN pass through ReLU.
    for (int i = 0; i < kWidth; ++i) floats[i] = floats[i] < 0.0F ? 0.0F : floats[i];
    store(y + first, floats);
  }
};

template <typename T>
struct ReluBackward {
  const T* y;
  const T* dy;
  T* dx;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    const auto outputs = load<kWidth>(y + first);
    auto floats = load<kWidth>(dy + first);
    for (int i = 0; i < kWidth; ++i) floats[i] = outputs[i] > 0.0F ? floats[i] : 0.0F;
    store(dx + first, floats);
  }
};

template <typename T>
struct Add {
  const T* a;
  const T* b;
  T* y;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    auto floats = load<kWidth>(a + first);
    const auto others = load<kWidth>(b + first);
    for (int i = 0; i < kWidth; ++i) floats[i] += others[i];
    store(y + first, floats);
  }
};

template <typename T>
struct Multiply {
  const T* a;
  const T* b;
  T* y;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    auto floats = load<kWidth>(a + first);
    const auto others = load<kWidth>(b + first);
    for (int i = 0; i < kWidth; ++i) floats[i] *= others[i];
    store(y + first, floats);
  }
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

template <typename T, typename Function>
struct ActivateForward {
  const T* x;
  T* y;
  Function function;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    auto floats = load<kWidth>(x + first);
    for (int i = 0; i < kWidth; ++i) floats[i] = value_of(function, floats[i]);
    store(y + first, floats);
  }
};

template <typename T, typename Function>
struct ActivateBackward {
  const T* x;
  const T* dy;
  T* dx;
  Function function;

  template <int kWidth>
  __device__ void at(std::int64_t first) const {
    const auto inputs = load<kWidth>(x + first);
    auto floats = load<kWidth>(dy + first);
    for (int i = 0; i < kWidth; ++i) floats[i] *= slope_of(function, inputs[i]);
    store(dx + first, floats);
  }
};

}  // namespace

template <typename From, typename T>
void normalise(const From* x, float unit, const float* mean, const float* stddev, T* y,
               std::int64_t count, int channels, cudaStream_t stream) {
  using Wide = std::conditional_t<(sizeof(From) > sizeof(T)), From, T>;
  for_each_element<Wide>("normalise", Normalise<From, T>{x, unit, mean, stddev, y, channels}, count,
                         aligned(x, y), stream);
}

template <typename From, typename To>
void convert(const From* x, To* y, std::int64_t count, cudaStream_t stream) {
  using Wide = std::conditional_t<(sizeof(From) > sizeof(To)), From, To>;
  for_each_element<Wide>("convert", Convert<From, To>{x, y}, count, aligned(x, y), stream);
}

template <typename T>
void relu_forward(const T* x, T* y, std::int64_t count, cudaStream_t stream) {
  for_each_element<T>("relu_forward", ReluForward<T>{x, y}, count, aligned(x, y), stream);
}

template <typename T>
void relu_backward(const T* y, const T* dy, T* dx, std::int64_t count, cudaStream_t stream) {
  for_each_element<T>("relu_backward", ReluBackward<T>{y, dy, dx}, count, aligned(y, dy, dx),
                      stream);
}

template <typename T>
void add(const T* a, const T* b, T* y, std::int64_t count, cudaStream_t stream) {
  for_each_element<T>("add", Add<T>{a, b, y}, count, aligned(a, b, y), stream);
}

template <typename T>
void multiply(const T* a, const T* b, T* y, std::int64_t count, cudaStream_t stream) {
  for_each_element<T>("multiply", Multiply<T>{a, b, y}, count, aligned(a, b, y), stream);
}

template <typename T>
void activate_forward(const ActivationOp& op, const T* x, T* y, std::int64_t count,
                      cudaStream_t stream) {
  with_function(op, [&]<typename Function>(Function function) {
    for_each_element<T>("activate_forward", ActivateForward<T, Function>{x, y, function}, count,
                        aligned(x, y), stream);
  });
}

template <typename T>
void activate_backward(const ActivationOp& op, const T* x, const T* dy, T* dx, std::int64_t count,
                       cudaStream_t stream) {
  with_function(op, [&]<typename Function>(Function function) {
    for_each_element<T>("activate_backward", ActivateBackward<T, Function>{x, dy, dx, function},
                        count, aligned(x, dy, dx), stream);
  });
}

// Instantiates the element-wise functions for float, __nv_bfloat16 and __half.
template void normalise(const std::uint8_t*, float, const float*, const float*, float*,
                        std::int64_t, int, cudaStream_t);
template void normalise(const std::uint16_t*, float, const float*, const float*, float*,
                        std::int64_t, int, cudaStream_t);
template void normalise(const float*, float, const float*, const float*, float*, std::int64_t, int,
                        cudaStream_t);
template void normalise(const std::uint8_t*, float, const float*, const float*, __nv_bfloat16*,
                        std::int64_t, int, cudaStream_t);
template void normalise(const std::uint16_t*, float, const float*, const float*, __nv_bfloat16*,
                        std::int64_t, int, cudaStream_t);
template void normalise(const float*, float, const float*, const float*, __nv_bfloat16*,
                        std::int64_t, int, cudaStream_t);
template void normalise(const std::uint8_t*, float, const float*, const float*, __half*,
                        std::int64_t, int, cudaStream_t);
template void normalise(const std::uint16_t*, float, const float*, const float*, __half*,
                        std::int64_t, int, cudaStream_t);
template void normalise(const float*, float, const float*, const float*, __half*, std::int64_t, int,
                        cudaStream_t);
template void relu_forward(const float*, float*, std::int64_t, cudaStream_t);
template void relu_backward(const float*, const float*, float*, std::int64_t, cudaStream_t);
template void add(const float*, const float*, float*, std::int64_t, cudaStream_t);
template void multiply(const float*, const float*, float*, std::int64_t, cudaStream_t);
template void multiply(const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, std::int64_t,
                       cudaStream_t);
template void multiply(const __half*, const __half*, __half*, std::int64_t, cudaStream_t);
template void activate_forward(const ActivationOp&, const float*, float*, std::int64_t,
                               cudaStream_t);
template void activate_forward(const ActivationOp&, const __nv_bfloat16*, __nv_bfloat16*,
                               std::int64_t, cudaStream_t);
template void activate_forward(const ActivationOp&, const __half*, __half*, std::int64_t,
                               cudaStream_t);
template void activate_backward(const ActivationOp&, const float*, const float*, float*,
                                std::int64_t, cudaStream_t);
template void activate_backward(const ActivationOp&, const __nv_bfloat16*, const __nv_bfloat16*,
                                __nv_bfloat16*, std::int64_t, cudaStream_t);
template void activate_backward(const ActivationOp&, const __half*, const __half*, __half*,
                                std::int64_t, cudaStream_t);
template void convert(const float*, float*, std::int64_t, cudaStream_t);
template void convert(const float*, __nv_bfloat16*, std::int64_t, cudaStream_t);
template void convert(const float*, __half*, std::int64_t, cudaStream_t);
template void relu_forward(const __nv_bfloat16*, __nv_bfloat16*, std::int64_t, cudaStream_t);
template void relu_backward(const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*,
                            std::int64_t, cudaStream_t);
template void add(const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, std::int64_t,
                  cudaStream_t);
template void convert(const __nv_bfloat16*, float*, std::int64_t, cudaStream_t);
template void convert(const __nv_bfloat16*, __nv_bfloat16*, std::int64_t, cudaStream_t);
template void convert(const __nv_bfloat16*, __half*, std::int64_t, cudaStream_t);
template void relu_forward(const __half*, __half*, std::int64_t, cudaStream_t);
template void relu_backward(const __half*, const __half*, __half*, std::int64_t, cudaStream_t);
template void add(const __half*, const __half*, __half*, std::int64_t, cudaStream_t);
template void convert(const __half*, float*, std::int64_t, cudaStream_t);
template void convert(const __half*, __nv_bfloat16*, std::int64_t, cudaStream_t);
template void convert(const __half*, __half*, std::int64_t, cudaStream_t);

}  // namespace syncopate::cuda
