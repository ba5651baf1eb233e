// The CUDA kernels of this program, for operations that cuDNN and cuBLAS lack or do not fuse. Every
// function starts work on `stream` and returns. The caller owns the memory, which is on the device
// and must stay valid until the stream has executed the work. Maps are NHWC without gaps. T is
// float, __nv_bfloat16 or __half. Sums are computed in f32 or wider, without floating-point
// atomics. Their order depends only on the sizes and on whether maps and values per channel are
// aligned to 16 bytes, as blocks of device memory always are. Two runs therefore give the same
// bits. Maps and values per channel may have any alignment; aligned maps are read fastest if their
// channels fill packs of 16 bytes. Counts and rows may be 0: sums are then zero and maps are not
// accessed. All functions throw DeviceError if CUDA refuses a launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "models/optim/kernels/optimizer_kernels.h"

namespace syncopate {
struct ActivationOp;
}

namespace syncopate::cuda {

// The next functions convert the samples of a batch to the input of the first layer.

// Normalises samples, u8, u16 or f32: y[i] = (x[i] / unit - mean[c]) / stddev[c], where c = i mod
// channels. mean, stddev: [channels] f32.
template <typename From, typename T>
void normalise(const From* x, float unit, const float* mean, const float* stddev, T* y,
               std::int64_t count, int channels, cudaStream_t stream);

// Converts elements from type From to type To, rounding to nearest even. Both types may be equal.
template <typename From, typename To>
void convert(const From* x, To* y, std::int64_t count, cudaStream_t stream);

// The folding of a map x [n, height, width, channels] into a map y [n, y_height, y_width,
// y_channels]. Pixel (Y, X) of y holds the channels of block x block pixels of x, row by row, from
// pixel (block * Y - top, block * X - left) on. Pixels outside x count as zeros, and the remaining
// channels of y are zero. With block = 1, each pixel of y holds one pixel of x.
struct FoldShape {
  std::int64_t n = 0;
  int height = 0, width = 0, channels = 0;
  int block = 1;
  int top = 0, left = 0;
  int y_height = 0, y_width = 0, y_channels = 0;  // y_channels >= block * block * channels
};
// Folds x into y.
template <typename T>
void fold(const FoldShape& shape, const T* x, T* y, cudaStream_t stream);
// Normalises samples like normalise() and folds them; mean, stddev: [channels] f32.
template <typename From, typename T>
void fold_normalised(const FoldShape& shape, const From* x, float unit, const float* mean,
                     const float* stddev, T* y, cudaStream_t stream);
// The inverse of fold(): computes x in f32 from y. Every pixel of x must be in y.
template <typename From>
void unfold(const FoldShape& shape, const From* y, float* x, cudaStream_t stream);

// The place of a map x [n, height, width, channels] in a map y [n, y_height, y_width, channels]:
// the first pixel of x lies in row `top` and column `left` of y. `top` and `left` are negative if y
// is a part of x.
struct BorderShape {
  std::int64_t n = 0;
  int height = 0, width = 0, channels = 0;
  int y_height = 0, y_width = 0;
  int top = 0, left = 0;
};
// Adds zeros around a map, or takes a part of it: writes the pixels of x to their places in y, and
// zeros elsewhere.
template <typename T>
void with_border(const BorderShape& shape, const T* x, T* y, cudaStream_t stream);

// The next functions are element-wise: activations, sums and products.

// Applies ReLU: y = max(x, 0). In all functions that apply ReLU, NaN stays NaN.
template <typename T>
void relu_forward(const T* x, T* y, std::int64_t count, cudaStream_t stream);
// Computes the input gradient of ReLU: dx = dy where y > 0, else 0. dx may be dy.
template <typename T>
void relu_backward(const T* y, const T* dy, T* dx, std::int64_t count, cudaStream_t stream);
// Adds two maps: y = a + b. y may be a or b.
template <typename T>
void add(const T* a, const T* b, T* y, std::int64_t count, cudaStream_t stream);
// Computes y = a * b. y may be a or b.
template <typename T>
void multiply(const T* a, const T* b, T* y, std::int64_t count, cudaStream_t stream);
// Applies an activation, y = f(x), and computes its input gradient, dx = f'(x) * dy. dx may be dy.
template <typename T>
void activate_forward(const ActivationOp& op, const T* x, T* y, std::int64_t count,
                      cudaStream_t stream);
template <typename T>
void activate_backward(const ActivationOp& op, const T* x, const T* dy, T* dx, std::int64_t count,
                       cudaStream_t stream);

// Dropout of samples x [n, elements]: y = x * scale if RandomStream(keys[sample],
// stream).bits(element) (models/base/random.h) is at least `threshold`, otherwise y = 0. keys: [n]
// on the device. y may be x.
struct Dropout {
  std::int64_t n = 0;
  std::int64_t elements = 0;
  std::uint64_t stream = 0;
  std::uint32_t threshold = 0;
  float scale = 1.0F;
};
template <typename T>
void dropout(const Dropout& how, const std::uint64_t* keys, const T* x, T* y, cudaStream_t stream);

// Adds a bias to a map y [rows, channels] in place: y[row, c] += bias[c] for every row. Then
// applies ReLU if `relu`. bias: f32 [channels].
template <typename T>
void add_bias(T* y, const float* bias, std::int64_t rows, int channels, bool relu,
              cudaStream_t stream);
// Computes the gradient of a bias, db: f32 [channels]. db[c] is the sum of dy[row, c] over all
// rows, where dy [rows, channels] is the gradient of the map to which the bias was added (before
// ReLU). scratch: bias_gradient_scratch() bytes.
template <typename T>
void bias_gradient(const T* dy, float* db, std::int64_t rows, int channels, void* scratch,
                   cudaStream_t stream);
// Returns the size in bytes of the scratch memory of bias_gradient().
std::int64_t bias_gradient_scratch(std::int64_t rows, int channels);

// The next functions compute the batch norm of a map [rows, channels]: y = gamma * (x - mean) /
// sqrt(var + epsilon) + beta (+ added), then optionally ReLU. gamma, beta, running_*: f32
// [channels]. Source: Ioffe and Szegedy 2015; running statistics as in PyTorch
// (models/graph/graph.h).

struct BatchNormShape {
  std::int64_t rows = 0;
  int channels = 0;
  float epsilon = 1e-5F;
  float momentum = 0.1F;  // running = (1 - momentum) * running + momentum * batch
  bool relu = false;
};
// Returns the bytes of scratch memory that batch norm's forward and backward sums need.
std::int64_t batch_norm_scratch(const BatchNormShape& shape);

// Computes batch norm's forward sums, sums: f64 [2 * channels + 1]. These are the sums of x -
// shift[c], then the sums of (x - shift[c])^2, then the number of rows. shift: f32 [channels],
// values near the mean, such as the running mean, so that the squares stay small.
template <typename T>
void batch_norm_sums(const BatchNormShape& shape, const T* x, const float* shift, double* sums,
                     void* scratch, cudaStream_t stream);
// Computes the sums of batch_norm_sums() for shape.rows rows from sums without a shift. x_sums: f32
// [channels], the sums of x. squares: f32 [channels], the sums of x^2. The arithmetic is f64, but
// each rounding of `squares` changes the variance by up to 2^-24 of mean^2 + variance, so the
// variance may become negative.
void batch_norm_shift_sums(const BatchNormShape& shape, const float* x_sums, const float* squares,
                           const float* shift, double* sums, cudaStream_t stream);
// Computes mean and inverse_stddev = 1 / sqrt(var + epsilon), f32 [channels] each, from the forward
// sums of one replica or of all replicas, and updates the running statistics. The running variance
// is unbiased, except if there is only one row. Writes nothing if the sums contain no row. A
// negative variance counts as 0. running_mean may be shift.
void batch_norm_finish(const BatchNormShape& shape, const double* sums, const float* shift,
                       float* mean, float* inverse_stddev, float* running_mean,
                       float* running_variance, cudaStream_t stream);
// Computes the argument inverse_stddev of batch_norm_apply() from the running variance, for
// evaluation.
void batch_norm_inverse_stddev(const BatchNormShape& shape, const float* running_variance,
                               float* inverse_stddev, cudaStream_t stream);
// Computes y of batch norm. added: null if no map is added. mask: receives which elements of y are
// above 0, in batch_norm_mask_bytes() bytes; null if no mask is needed. If the channels of y fill
// packs of 16 bytes, the mask has a byte for each pack, and all maps must be aligned to 16 bytes.
// Otherwise the mask has a byte for each element.
template <typename T>
void batch_norm_apply(const BatchNormShape& shape, const T* x, const float* mean,
                      const float* inverse_stddev, const float* gamma, const float* beta,
                      const T* added, T* y, std::uint8_t* mask, cudaStream_t stream);
template <typename T>
std::int64_t batch_norm_mask_bytes(const BatchNormShape& shape) {
  constexpr std::int64_t kPack = 16 / static_cast<std::int64_t>(sizeof(T));
  return shape.rows * shape.channels / (shape.channels % kPack == 0 ? kPack : 1);
}
// Computes batch norm's backward sums of the masked gradient dz, which is dy + dy2 where
// batch_norm_apply() has set the mask, and 0 elsewhere. mask: null without ReLU. dy2: null if there
// is one gradient. sums: f64 [2 * channels + 1], the sums of dz, then the sums of dz * (x - mean) *
// inverse_stddev, then the number of rows. dz: if not null, receives the masked gradient, which is
// also the gradient of an added map; batch_norm_backward() can read dz in place of mask, dy and
// dy2.
template <typename T>
void batch_norm_gradient_sums(const BatchNormShape& shape, const T* x, const std::uint8_t* mask,
                              const T* dy, const T* dy2, const float* mean,
                              const float* inverse_stddev, T* dz, double* sums, void* scratch,
                              cudaStream_t stream);
// Computes the gradients dgamma and dbeta of this replica, and the coefficients of batch norm's
// input gradient, f32 [3 * channels]. own_sums: the backward sums of this replica. sums: the
// backward sums over all replicas.
void batch_norm_finish_gradient(const BatchNormShape& shape, const double* own_sums,
                                const double* sums, const float* mean, const float* inverse_stddev,
                                const float* gamma, float* dgamma, float* dbeta,
                                float* coefficients, cudaStream_t stream);
// Computes batch norm's input gradient from the coefficients: dx = gamma * inverse_stddev * (dz -
// sums[c] / m - xhat * sums[C + c] / m), where m = sums[2 C] and xhat = (x - mean) *
// inverse_stddev. dx may be dy or dy2.
template <typename T>
void batch_norm_backward(const BatchNormShape& shape, const T* x, const std::uint8_t* mask,
                         const T* dy, const T* dy2, const float* coefficients, T* dx,
                         cudaStream_t stream);

// The next functions compute layer norm over the channels of each row of a map [rows, channels].
// weight, bias: f32 [channels]. Source: Ba et al. 2016.

struct LayerNormShape {
  std::int64_t rows = 0;
  int channels = 0;
  float epsilon = 1e-5F;
};
// Computes y = (x - mean) * inverse_stddev * weight + bias. mean, inverse_stddev: f32 [rows],
// receive the statistics of each row; null in evaluations.
template <typename T>
void layer_norm(const LayerNormShape& shape, const T* x, const float* weight, const float* bias,
                T* y, float* mean, float* inverse_stddev, cudaStream_t stream);
// Computes the input gradient of layer norm. dx may be dy.
template <typename T>
void layer_norm_backward(const LayerNormShape& shape, const T* x, const T* dy, const float* weight,
                         const float* mean, const float* inverse_stddev, T* dx,
                         cudaStream_t stream);
// Computes the gradients of weight and bias, gradients: f32 [2, channels]. scratch:
// layer_norm_scratch() bytes.
template <typename T>
void layer_norm_parameter_gradients(const LayerNormShape& shape, const T* x, const T* dy,
                                    const float* mean, const float* inverse_stddev,
                                    float* gradients, void* scratch, cudaStream_t stream);
std::int64_t layer_norm_scratch(const LayerNormShape& shape);

// Softmax over the channels of each row of a map [rows, channels], and its input gradient, computed
// from the output y. dx may be dy.
template <typename T>
void softmax(std::int64_t rows, int channels, const T* x, T* y, cudaStream_t stream);
template <typename T>
void softmax_backward(std::int64_t rows, int channels, const T* y, const T* dy, T* dx,
                      cudaStream_t stream);

// The shape of a pooling over windows. Windows that do not fit into the padded map are dropped.

struct PoolShape {
  std::int64_t n = 0;
  int height = 0, width = 0, channels = 0;  // of the input
  int window = 2, stride = 2, pad = 0;      // requires window > 2 * pad
  int out_height() const { return (height + 2 * pad - window) / stride + 1; }
  int out_width() const { return (width + 2 * pad - window) / stride + 1; }
};
// Max-pooling over the elements of each window that are not padding. chosen receives the index of
// the largest element in its window, counted row by row with padding included. Of equal elements,
// the first is chosen. Requires window <= 16.
template <typename T>
void max_pool_forward(const PoolShape& shape, const T* x, T* y, std::uint8_t* chosen,
                      cudaStream_t stream);
// Computes the input gradient of max-pooling; overwrites all of dx. If windows overlap, their
// gradients are added in the order of the windows.
template <typename T>
void max_pool_backward(const PoolShape& shape, const T* dy, const std::uint8_t* chosen, T* dx,
                       cudaStream_t stream);
// Average pooling over windows; padding counts as zeros, so every mean is divided by window^2.
template <typename T>
void window_average_forward(const PoolShape& shape, const T* x, T* y, cudaStream_t stream);
// Computes the input gradient of window_average_forward(); overwrites all of dx. If windows
// overlap, their gradients are added in the order of the windows.
template <typename T>
void window_average_backward(const PoolShape& shape, const T* dy, T* dx, cudaStream_t stream);
// Global average pooling: y [n, channels] is the mean of x [n, pixels, channels] over the pixels.
template <typename T>
void average_pool_forward(const T* x, T* y, std::int64_t n, int pixels, int channels,
                          cudaStream_t stream);
template <typename T>
void average_pool_backward(const T* dy, T* dx, std::int64_t n, int pixels, int channels,
                           cudaStream_t stream);

// The shape of ResNet's shortcut without parameters (ShortcutOp), from x [n, height, width,
// channels] to y [n, ceil(height / stride), ceil(width / stride), out_channels]. The shortcut takes
// every stride-th pixel and appends channels of zeros.
struct ShortcutShape {
  std::int64_t n = 0;
  int height = 0, width = 0, channels = 0;
  int stride = 2, out_channels = 0;
};
template <typename T>
void shortcut_forward(const ShortcutShape& shape, const T* x, T* y, cudaStream_t stream);
// Computes the input gradient of the shortcut; overwrites all of dx.
template <typename T>
void shortcut_backward(const ShortcutShape& shape, const T* dy, T* dx, cudaStream_t stream);

// The shape of the upsampling (UpsampleOp) of x [n, height, width, channels] by the integer factor
// `scale`.
struct UpsampleShape {
  std::int64_t n = 0;
  int height = 0, width = 0, channels = 0;
  int scale = 2;
  bool is_bilinear = false;
};
template <typename T>
void upsample_forward(const UpsampleShape& shape, const T* x, T* y, cudaStream_t stream);
template <typename T>
void upsample_backward(const UpsampleShape& shape, const T* dy, T* dx, cudaStream_t stream);

// Describes maps y [n, sides[0], sides[1], sides[2]] of sums over x, such as means and transposes.
// For each sample, y[i, j, k] = factor * sum over a < counts[0], b < counts[1], c < counts[2] of
// x[i * outer[0] + j * outer[1] + k * outer[2] + a * inner[0] + b * inner[1] + c * inner[2]].
struct AxisSums {
  std::int64_t n = 0;
  int sides[3] = {1, 1, 1};
  std::int64_t x_elements = 0;  // elements of a sample of x
  std::int64_t outer[3] = {0, 0, 0};
  int counts[3] = {1, 1, 1};
  std::int64_t inner[3] = {0, 0, 0};
  float factor = 1.0F;
};
template <typename T>
void axis_sums(const AxisSums& sums, const T* x, T* y, cudaStream_t stream);

// Multiply a map [n, pixels, channels] by one factor per sample and channel, [n, channels], and
// compute the gradient of the factors.
template <typename T>
void multiply_channels(const T* x, const T* factors, T* y, std::int64_t n, int pixels, int channels,
                       cudaStream_t stream);
template <typename T>
void multiply_channels_gradient(const T* x, const T* dy, T* dfactors, std::int64_t n, int pixels,
                                int channels, cudaStream_t stream);

// The sums of the loss and of its main metric over the samples of a batch.

struct LossSums {
  double loss = 0.0;    // sum of the sample losses / divisor
  double metric = 0.0;  // sum of the samples' main metric, such as their accuracies
};
struct LossShape {
  std::int64_t n = 0;  // samples
  int pixels = 0;      // pixels of a label map; 0: a sample has one label, and all labels count
  int classes = 0;
  float smoothing = 0.0F;  // LossOp::label_smoothing
  double divisor = 1.0;

  std::int64_t rows() const { return n * (pixels == 0 ? 1 : pixels); }
};
// Computes softmax and cross entropy of logits [n, classes] with labels [n], or of logits [n,
// pixels, classes] with labels [n, pixels]. A label outside the classes makes the loss NaN.
// dlogits: receives the gradient, scale * weight * (softmax - target) / divisor; null if it is not
// needed. weight is 1 for single labels; for label maps, it is 1 / (number of the sample's pixels
// that are not kUncounted). scale: on the device; null counts as 1. Source: the largest logit is
// subtracted first, Goodfellow et al. 2016, section 4.1.
template <typename T>
void softmax_cross_entropy(const LossShape& shape, const T* logits, const std::int32_t* labels,
                           const float* scale, T* dlogits, LossSums* sums, void* scratch,
                           cudaStream_t stream);
std::int64_t softmax_cross_entropy_scratch(const LossShape& shape);

// The losses with numbers as targets, for x and targets [n, values]: binary cross-entropy with
// logits x, or the mean squared error, as defined in models/graph/graph.h. dx and scale correspond
// to dlogits and scale of softmax_cross_entropy().
struct NumberLossShape {
  std::int64_t n = 0;  // samples
  int values = 0;      // the numbers of a target
  bool is_binary_cross_entropy = false;
  double divisor = 1.0;
};
template <typename T>
void number_loss(const NumberLossShape& shape, const T* x, const float* targets, const float* scale,
                 T* dx, LossSums* sums, void* scratch, cudaStream_t stream);
std::int64_t number_loss_scratch(const NumberLossShape& shape);

// The state of loss scaling. An fp16 network computes the gradients of `scale` times the loss,
// because small gradients would underflow otherwise. A step with a gradient that is not finite is
// skipped and lowers the scale. The state is on the device, so that a captured step does not need
// the host. Source: Micikevicius et al. 2018, section 3.2; factors and steps as in PyTorch's
// GradScaler.

struct LossScale {
  float scale = 1.0F;
  std::int32_t found_non_finite = 0;  // 1 after a non-finite gradient, until adjust_scale()
  std::int32_t good_steps = 0;        // steps without overflow since the scale last changed
  std::int32_t skipped_steps = 0;     // steps skipped in the whole run
};
// Records in `scale` whether one of the `count` gradients is infinite or NaN.
void find_non_finite(const float* gradients, std::int64_t count, LossScale* scale,
                     cudaStream_t stream);
// Divides the gradients by the loss scale in place. Sets all gradients to zero if a non-finite
// gradient was found.
void unscale(const LossScale* scale, float* gradients, std::int64_t count, cudaStream_t stream);
// Ends a step of loss scaling. If a non-finite gradient was found, halves the scale, but not below
// 1. Otherwise doubles the scale after growth_interval good steps.
void adjust_scale(LossScale* scale, int growth_interval, cudaStream_t stream);

// The next functions are gradient clipping and the optimizers' update rules. They work on a whole
// arena.

// Scales gradients, f32 [count], so that their L2 norm, divided by the loss scale, is at most
// max_norm. scale: null counts as 1. squares: scratch, [kSquaresBlocks]. A gradient that is
// infinite or NaN stays non-finite. Source: clip_grad_norm_ of PyTorch, as in
// models/optim/gradient_clip.h.
inline constexpr int kSquaresBlocks = 256;
void clip_gradients(float* gradients, std::int64_t count, double max_norm, const LossScale* scale,
                    double* squares, cudaStream_t stream);

// Makes one update of an optimizer on `count` elements. values, gradients, slots: f32 [count].
// decays[i / kDecayBlock] is 1 if element i is updated with the constants with_decay, and 0 if it
// is updated with without_decay. weights: receives a copy of the values in the type of the
// activations, unless null. scale: the loss scale of the gradients, null for 1. If a non-finite
// gradient was found, only the moving average of the values changes. The results are bit-equal to
// the results on the CPU (models/optim).
inline constexpr int kDecayBlock = 64;  // in elements; parameters begin at multiples of this number
struct UpdateArrays {
  float* values = nullptr;
  const float* gradients = nullptr;
  float* slots[2] = {nullptr, nullptr};
  float* average = nullptr;  // moving average of the values; null: there is none
  const std::uint8_t* decays = nullptr;
  const LossScale* scale = nullptr;
};
template <typename T>
void update(const UpdateConstants& with_decay, const UpdateConstants& without_decay,
            const UpdateArrays& arrays, T* weights, std::int64_t count, cudaStream_t stream);

// The next function sums the gradients of replicas on one device.

inline constexpr int kMostSummedReplicas = 32;
// The addresses of the gradient arenas of all replicas; the index is the rank.
struct ReplicaSlices {
  float* arenas[kMostSummedReplicas] = {};
  int count = 0;
};
// Replaces elements [begin, begin + count) of every arena by their sum over all arenas. Adds in the
// order of models/tensor/sums.h, so the sums are bit-equal to sums on the CPU.
void sum_replicas(const ReplicaSlices& slices, std::int64_t begin, std::int64_t count,
                  cudaStream_t stream);

}  // namespace syncopate::cuda
