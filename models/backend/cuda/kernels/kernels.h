// Our own CUDA kernels: what cuDNN and cuBLAS have not, or not fused. Every function starts work on
// `stream` and returns; memory is the caller's, on the device, and lasts until the stream has
// passed. Maps are NHWC without gaps. T: float or __nv_bfloat16 or __half (kernels are instantiated
// for all three); sums are made in f32 or wider, in an order that depends on the sizes alone (and
// on whether the maps stand on multiples of 16 bytes, as the device's blocks do): no floating-point
// atomics, so the same bits twice. Maps may stand anywhere; on 16 bytes, with channels that fill
// packs of 16 bytes, they are read fastest. Counts and rows may be 0: sums are then zero, and maps
// are not touched. A launch that CUDA refuses throws DeviceError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "models/optim/kernels/optimizer_kernels.h"

namespace syncopate::cuda {

// Samples.

// y[i] = (x[i] / 255 - mean[c]) / stddev[c], c = i mod channels. mean, stddev: [channels] f32.
template <typename T>
void normalise(const std::uint8_t* x, const float* mean, const float* stddev, T* y,
               std::int64_t count, int channels, cudaStream_t stream);

// Conversion, round to nearest even. From and To may be the same.
template <typename From, typename To>
void convert(const From* x, To* y, std::int64_t count, cudaStream_t stream);

// Each of `rows` rows of `channels` with y_channels in their place: further ones are zero, or the
// last ones are left out.
template <typename From, typename To>
void with_channels(const From* x, int channels, To* y, int y_channels, std::int64_t rows,
                   cudaStream_t stream);
// normalise(), with further channels that are zero.
template <typename T>
void normalise_with_channels(const std::uint8_t* x, const float* mean, const float* stddev,
                             int channels, T* y, int y_channels, std::int64_t rows,
                             cudaStream_t stream);

// Element by element.

// NaN stays NaN, here and in the others that apply ReLU.
template <typename T>
void relu_forward(const T* x, T* y, std::int64_t count, cudaStream_t stream);
// dx = dy where y > 0, else 0. dx may be dy.
template <typename T>
void relu_backward(const T* y, const T* dy, T* dx, std::int64_t count, cudaStream_t stream);
// y = a + b. y may be a or b.
template <typename T>
void add(const T* a, const T* b, T* y, std::int64_t count, cudaStream_t stream);

// Bias, over [rows, channels].

// y += bias[c], then ReLU if asked for; in place. bias: f32.
template <typename T>
void add_bias(T* y, const float* bias, std::int64_t rows, int channels, bool relu,
              cudaStream_t stream);
// db[c] = sum over rows of dy. scratch: bias_gradient_scratch() bytes.
template <typename T>
void bias_gradient(const T* dy, float* db, std::int64_t rows, int channels, void* scratch,
                   cudaStream_t stream);
std::int64_t bias_gradient_scratch(std::int64_t rows, int channels);

// Batch norm over [rows, channels]: y = gamma * (x - mean) / sqrt(var + epsilon) + beta (+ added)
// (then ReLU). gamma, beta, running_*: f32 [channels].
// Source: Ioffe and Szegedy 2015; running statistics as PyTorch keeps them (models/graph/graph.h).

struct BatchNormShape {
  std::int64_t rows = 0;
  int channels = 0;
  float epsilon = 1e-5F;
  float momentum = 0.1F;  // running = (1 - momentum) * running + momentum * batch
  bool relu = false;
};
std::int64_t batch_norm_scratch(const BatchNormShape& shape);  // bytes, for sums of both kinds

// sums: [2 * channels + 1] f64: sum of x - shift[c], sum of its square, rows. shift: [channels]
// f32, any values near the mean (the running mean): they keep the squares small.
template <typename T>
void batch_norm_sums(const BatchNormShape& shape, const T* x, const float* shift, double* sums,
                     void* scratch, cudaStream_t stream);
// Such sums of shape.rows rows, from f32 [channels] of x and of its square as they are. In f64; but
// what rounding the squares' sum lost, the variance has lost, too: 2^-24 of mean^2 + variance for
// each rounding, so it may come out below 0.
void batch_norm_shift_sums(const BatchNormShape& shape, const float* x_sums, const float* squares,
                           const float* shift, double* sums, cudaStream_t stream);
// From such sums, of one replica or of all: mean and 1 / sqrt(var + epsilon), [channels] f32 each;
// and moves the running statistics (var unbiased; of one row it is taken as it is; of none, on any
// replica, nothing is written). A variance below 0 is 0. running_mean may be shift.
void batch_norm_finish(const BatchNormShape& shape, const double* sums, const float* shift,
                       float* mean, float* inverse_stddev, float* running_mean,
                       float* running_variance, cudaStream_t stream);
// For evaluation: inverse_stddev from the running variance.
void batch_norm_inverse_stddev(const BatchNormShape& shape, const float* running_variance,
                               float* inverse_stddev, cudaStream_t stream);
// added: null for none.
template <typename T>
void batch_norm_apply(const BatchNormShape& shape, const T* x, const float* mean,
                      const float* inverse_stddev, const float* gamma, const float* beta,
                      const T* added, T* y, cudaStream_t stream);
// The masked gradient is dz = (dy + dy2) * (y > 0), without ReLU dy + dy2, and y may be null; dy2
// null: none.
// sums: [2 * channels + 1] f64: sum of dz, sum of dz * (x - mean) * inverse_stddev, rows.
template <typename T>
void batch_norm_gradient_sums(const BatchNormShape& shape, const T* x, const T* y, const T* dy,
                              const T* dy2, const float* mean, const float* inverse_stddev,
                              double* sums, void* scratch, cudaStream_t stream);
// dx = gamma * inverse_stddev * (dz - sums[c] / m - xhat * sums[C + c] / m), with m = sums[2 C];
// dadded = dz where it is asked for (null: not). dx may be dy or dy2.
template <typename T>
void batch_norm_backward(const BatchNormShape& shape, const T* x, const T* y, const T* dy,
                         const T* dy2, const float* mean, const float* inverse_stddev,
                         const float* gamma, const double* sums, T* dx, T* dadded,
                         cudaStream_t stream);
// dgamma and dbeta of this replica: its own sums, whatever was summed over replicas since.
void batch_norm_parameter_gradients(const BatchNormShape& shape, const double* own_sums,
                                    float* dgamma, float* dbeta, cudaStream_t stream);

// Pooling. Of a window that reaches into the padding only what lies inside counts; one that does
// not fit is dropped.

struct PoolShape {
  std::int64_t n = 0;
  int height = 0, width = 0, channels = 0;  // of the input
  int window = 2, stride = 2, pad = 0;      // window > 2 * pad
  int out_height() const { return (height + 2 * pad - window) / stride + 1; }
  int out_width() const { return (width + 2 * pad - window) / stride + 1; }
};
// chosen: which element of the window was largest, row by row with the padding counted; of equals
// the first. window <= 16.
template <typename T>
void max_pool_forward(const PoolShape& shape, const T* x, T* y, std::uint8_t* chosen,
                      cudaStream_t stream);
// dx is written whole. Where windows overlap, their gradients are added in the order of windows.
template <typename T>
void max_pool_backward(const PoolShape& shape, const T* dy, const std::uint8_t* chosen, T* dx,
                       cudaStream_t stream);
// Mean over pixels: x [n, pixels, channels], y [n, channels].
template <typename T>
void average_pool_forward(const T* x, T* y, std::int64_t n, int pixels, int channels,
                          cudaStream_t stream);
template <typename T>
void average_pool_backward(const T* dy, T* dx, std::int64_t n, int pixels, int channels,
                           cudaStream_t stream);

// ResNet's shortcut A: x [n, height, width, channels] -> y [n, ceil(height / stride),
// ceil(width / stride), out_channels]: every stride-th pixel, new channels zero, at the end.
struct ShortcutShape {
  std::int64_t n = 0;
  int height = 0, width = 0, channels = 0;
  int stride = 2, out_channels = 0;
};
template <typename T>
void shortcut_forward(const ShortcutShape& shape, const T* x, T* y, cudaStream_t stream);
// dx is written whole.
template <typename T>
void shortcut_backward(const ShortcutShape& shape, const T* dy, T* dx, cudaStream_t stream);

// Loss.

struct LossSums {
  double loss = 0.0;             // sum of the sample losses / divisor
  std::int64_t num_correct = 0;  // the largest logit, of equals the first, is the label's
};
// logits [n, classes]; labels [n]; one that is no class makes the loss NaN. dlogits = scale *
// (softmax - onehot) / divisor, T; null: none. scale: on the device; null: 1. Source: the largest
// logit is subtracted first, Goodfellow et al. 2016, section 4.1.
template <typename T>
void softmax_cross_entropy(const T* logits, const std::int32_t* labels, std::int64_t n, int classes,
                           double divisor, const float* scale, T* dlogits, LossSums* sums,
                           void* scratch, cudaStream_t stream);
std::int64_t softmax_cross_entropy_scratch(std::int64_t n);

// Loss scaling: gradients of a network in f16 are those of `scale` times the loss, or small ones
// would vanish; a step with one that is not finite is skipped, and the scale falls. It lives on the
// device, so that a captured step needs nobody to ask.
// Source: Micikevicius et al. 2018, section 3.2; factors and steps as PyTorch's GradScaler has
// them.

struct LossScale {
  float scale = 1.0F;
  std::int32_t found_non_finite = 0;  // since the last adjust_scale()
  std::int32_t good_steps = 0;        // since the scale last changed
  std::int32_t skipped_steps = 0;     // of the run
};
// Notes in `scale` whether one of `count` gradients is infinite or NaN.
void find_non_finite(const float* gradients, std::int64_t count, LossScale* scale,
                     cudaStream_t stream);
// gradients /= scale, in place; all zero where a non-finite one was found.
void unscale(const LossScale* scale, float* gradients, std::int64_t count, cudaStream_t stream);
// At the end of a step: halves the scale (to 1 at least) where one was found, else doubles it once
// growth_interval steps were good.
void adjust_scale(LossScale* scale, int growth_interval, cudaStream_t stream);

// Update rules.

// values, gradients, slots [count] f32: one update of `count` elements. decays[i / 64]: which
// constants element i takes, those for decay (1) or those without (0). weights: the values in the
// type of the activations, written too; null: none. scale: by what the gradients are too large;
// where one of them was found not to be finite nothing is written; null: 1. The same bits as the
// rules on the CPU (models/optim).
inline constexpr int kDecayBlock = 64;  // elements; parameters begin on such a border
struct UpdateArrays {
  float* values = nullptr;
  const float* gradients = nullptr;
  float* slots[2] = {nullptr, nullptr};
  const std::uint8_t* decays = nullptr;
  const LossScale* scale = nullptr;
};
template <typename T>
void update(const UpdateConstants& with_decay, const UpdateConstants& without_decay,
            const UpdateArrays& arrays, T* weights, std::int64_t count, cudaStream_t stream);

// Gradients of replicas on one device.

inline constexpr int kMostSummedReplicas = 32;
// Where each replica's arena begins, by rank.
struct ReplicaSlices {
  float* arenas[kMostSummedReplicas] = {};
  int count = 0;
};
// Elements [begin, begin + count) of every arena become their sum over all, in the order of
// models/tensor/sums.h: the same bits as on the CPU, on all of them.
void sum_replicas(const ReplicaSlices& slices, std::int64_t begin, std::int64_t count,
                  cudaStream_t stream);

}  // namespace syncopate::cuda
