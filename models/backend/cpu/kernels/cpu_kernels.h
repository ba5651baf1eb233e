// The kernels of the CPU backend for operations that are limited by memory bandwidth, in one table
// of functions per instruction set. oneDNN computes convolutions and matrix products.
//
// Maps are blocked: [N, ceil(C / B), H * W, B] f32, where B is `block`. Channels beyond C are zero
// in values; in gradients they are undefined and never read. Arrays per channel have ceil(C / B) *
// B elements. A function computes the samples of one lane; with n = 0 it has no effect.
#pragma once

#include <cstdint>

#include "models/graph/activation.h"

namespace syncopate {

// Defined in models/base/isa.h, which the kernels do not include because it includes library
// templates.
enum class Isa;

// The shape [n, blocks, pixels, B] of a map with blocked channels.
struct BlockedShape {
  std::int64_t n;
  std::int64_t blocks;
  std::int64_t pixels;
};

// The shape of a pooling with square windows over maps of in_h x in_w pixels. Every window contains
// at least one pixel of the map. For the maximum, padding pixels are ignored; for the mean, they
// are zeros.
struct PoolShape {
  std::int64_t n;
  std::int64_t blocks;
  std::int64_t in_h;
  std::int64_t in_w;
  std::int64_t out_h;
  std::int64_t out_w;
  int window;
  int stride;
  int pad = 0;
};

// The shape of an upsampling of maps of h x w pixels by the integer factor `scale`.
struct UpsampleShape {
  std::int64_t n;
  std::int64_t blocks;
  std::int64_t h;
  std::int64_t w;
  int scale;
  bool is_bilinear;
};

// The shape of a first layer that is computed in one pass: 3x3 convolution with stride 1 and
// without padding, bias, ReLU and 2x2 max-pooling. Used if the samples have few channels.
struct ConvPoolShape {
  std::int64_t n;
  std::int64_t in_h;
  std::int64_t in_w;
  int in_channels;  // number of input channels: 1 to 3
  std::int64_t out_channels;
  std::int64_t pooled_h;
  std::int64_t pooled_w;
  bool channels_last;  // true: the pooled map is [N, H, W, K]; false: it is blocked
};

struct BatchNormBackward {
  const float* dy;
  const float* dy2;    // second output gradient, added to dy; may be null
  const float* x;      // the normalised input
  const float* y;      // the ReLU's output; null if its mask is computed from x
  const float* scale;  // scale of batch norm: y = x * scale + shift (+ added)
  const float* shift;
  const float* mean;
  const float* inverse_deviation;
  float* dz;  // receives dy + dy2, masked by the ReLU, unless null; may be dy
  bool relu;
};

struct BatchNormInputGradient {
  const float* dz;
  const float* x;
  float* dx;  // the input gradient; may be dz
  const float* a;
  const float* m;
  const float* mean;
  const float* k;
  // The scale and shift of a batch norm followed by ReLU, if dz is still to be masked: dz then
  // counts as 0 where the ReLU's input x * scale + shift is not above 0. Null: there is no ReLU, or
  // dz has been masked already.
  const float* scale;
  const float* shift;
};

// The shape of values that are processed pixel by pixel: a map [n, ceil(channels / B), pixels, B]
// if is_blocked, otherwise vectors [n, channels] with pixels = 1.
struct ChannelRows {
  std::int64_t n;
  std::int64_t pixels;
  std::int64_t channels;
  bool is_blocked;
};

struct LayerNormBackward {
  const float* dy;
  const float* x;
  const float* weight;             // [channels]
  const float* mean;               // [n, pixels], written by layer_norm()
  const float* inverse_deviation;  // [n, pixels]
  float* dx;                       // receives the input gradient, unless null; may be dy
  float* dweight;                  // [channels], overwritten
  float* dbias;                    // [channels], overwritten
};

// Kernels may read and write this many bytes beyond the end of a dropout's mask.
inline constexpr std::int64_t kMaskSlack = 64;

struct CpuKernels {
  int block;

  // Normalise u8 samples x [n, pixels, channels] to f32: y = x * scale[c] + shift[c].
  // pixels_to_planar writes y as [n, channels, pixels], pixels_to_interleaved as [n, pixels,
  // channels].
  void (*pixels_to_planar)(const std::uint8_t* x, float* y, std::int64_t n, std::int64_t pixels,
                           int channels, const float* scale, const float* shift);
  void (*pixels_to_interleaved)(const std::uint8_t* x, float* y, std::int64_t n,
                                std::int64_t pixels, int channels, const float* scale,
                                const float* shift);

  // Computes the forward sums of batch norm: sums [2, channels] f64 are the sums of x and of x * x.
  void (*batch_norm_statistics)(const float* x, BlockedShape shape, double* sums);
  // Applies batch norm: y = x * scale + shift (+ added), then ReLU if `relu`. `added` may be null.
  void (*batch_norm_apply)(const float* x, const float* added, float* y, BlockedShape shape,
                           const float* scale, const float* shift, bool relu);
  // Computes dz = dy (+ dy2), or 0 where the ReLU's output is 0. Also computes the backward sums of
  // batch norm: sums [2, channels] f64 are the sums of dz and of dz * (x - mean) *
  // inverse_deviation.
  void (*batch_norm_backward_sums)(const BatchNormBackward& args, BlockedShape shape, double* sums);
  // Computes the input gradient of batch norm: dx = a * (dz - m) - (x - mean) * k. a, m, mean and k
  // have one value per channel.
  void (*batch_norm_backward_apply)(const BatchNormInputGradient& args, BlockedShape shape);

  // Layer norm: y = (x - mean) * inverse_deviation * weight + bias, with weight and bias
  // [channels]. mean and inverse_deviation [n, pixels] receive the statistics of each pixel, unless
  // null.
  void (*layer_norm)(const float* x, float* y, const ChannelRows& shape, const float* weight,
                     const float* bias, float epsilon, float* mean, float* inverse_deviation);
  void (*layer_norm_backward)(const LayerNormBackward& args, const ChannelRows& shape);

  // Draws the mask of a sample: mask[i] = RandomStream(key, stream).bits(i) >= threshold.
  void (*dropout_mask)(std::uint64_t key, std::uint64_t stream, std::uint32_t threshold,
                       std::uint8_t* mask, std::int64_t count);
  // Computes y = x * mask * scale, with mask [n, pixels, channels]. y may be x.
  void (*dropout)(const float* x, const std::uint8_t* mask, float scale, float* y,
                  const ChannelRows& shape);

  void (*relu)(const float* x, float* y, std::int64_t count);
  // Computes the input gradient of ReLU: dx = y > 0 ? dy : 0.
  void (*relu_backward)(const float* dy, const float* y, float* dx, std::int64_t count);
  void (*add)(const float* a, const float* b, float* y, std::int64_t count);
  // Computes y = a * b.
  void (*multiply)(const float* a, const float* b, float* y, std::int64_t count);
  // Computes y = x * factor, with one factor for each sample and channel. factor is [n, factors];
  // `factors` is C, or C rounded up to whole blocks.
  void (*multiply_channels)(const float* x, const float* factor, float* y, BlockedShape shape,
                            std::int64_t factors);
  // Computes the gradient of the factors of multiply_channels: the sum of dy * x over the pixels.
  void (*multiply_channels_gradient)(const float* dy, const float* x, float* dfactor,
                                     BlockedShape shape, std::int64_t factors);

  // An activation, y = f(x), and its backward pass, dx = f'(x) * dy. The exponential has a relative
  // error of 2e-7; the error function has an absolute error of 2e-7.
  void (*activate)(const ActivationOp& op, const float* x, float* y, std::int64_t count);
  void (*activate_backward)(const ActivationOp& op, const float* x, const float* dy, float* dx,
                            std::int64_t count);
  // Softmax over the channels of each pixel, and its backward pass, which reads the output y.
  void (*softmax)(const float* x, float* y, const ChannelRows& shape);
  void (*softmax_backward)(const float* y, const float* dy, float* dx, const ChannelRows& shape);
  // Sets the padding of a blocked map to zero: the elements of the last block that are beyond the
  // first `channels` channels of the map.
  void (*clear_padding)(float* y, BlockedShape shape, std::int64_t channels);

  // Copies `count` channels of x [n, x_blocks, pixels, B], from channel x_first on, to the channels
  // of y [n, y_blocks, pixels, B] from y_first on.
  void (*copy_channels)(const float* x, std::int64_t x_blocks, std::int64_t x_first, float* y,
                        std::int64_t y_blocks, std::int64_t y_first, std::int64_t n,
                        std::int64_t pixels, std::int64_t count);

  // Max-pooling. winner [n, blocks, out pixels, B] u8 receives the position of each maximum in its
  // window, in row-major order, with padding pixels counted. Of equal maxima, the first is the
  // winner. winner may be null.
  void (*max_pool)(const float* x, float* y, std::uint8_t* winner, const PoolShape& shape);
  void (*max_pool_backward)(const float* dy, const std::uint8_t* winner, float* dx,
                            const PoolShape& shape);

  // Average pooling: the mean of each window, with padding pixels counted as zeros.
  void (*average_pool)(const float* x, float* y, const PoolShape& shape);
  void (*average_pool_backward)(const float* dy, float* dx, const PoolShape& shape);

  // Upsampling of x [n, blocks, h, w, B] to y [n, blocks, scale * h, scale * w, B].
  void (*upsample)(const float* x, float* y, const UpsampleShape& shape);
  void (*upsample_backward)(const float* dy, float* dx, const UpsampleShape& shape);

  // Average pooling over all pixels of a blocked map, into y [n, channels], and its backward pass.
  void (*global_average_pool)(const float* x, float* y, BlockedShape shape, std::int64_t channels);
  void (*global_average_pool_backward)(const float* dy, float* dx, BlockedShape shape,
                                       std::int64_t channels);

  // Convert maps between the blocked layout and [n, pixels, channels].
  void (*blocked_to_interleaved)(const float* x, float* y, BlockedShape shape,
                                 std::int64_t channels);
  void (*interleaved_to_blocked)(const float* x, float* y, BlockedShape shape,
                                 std::int64_t channels);

  // ResNet's shortcut: takes every stride-th pixel of x. The first in_blocks blocks of y receive
  // the channels of x; the other blocks receive zeros. shape.blocks is the number of blocks of y
  // and must be at least in_blocks.
  void (*shortcut)(const float* x, float* y, const PoolShape& shape, std::int64_t in_blocks);
  void (*shortcut_backward)(const float* dy, float* dx, const PoolShape& shape,
                            std::int64_t in_blocks);

  // Adds a bias: y [n, features] += bias, then ReLU if `relu`.
  void (*add_bias)(float* y, const float* bias, std::int64_t n, std::int64_t features, bool relu);
  // Computes the gradient of a bias, dbias [features] = sum over n of dy [n, features].
  void (*bias_gradient)(const float* dy, float* dbias, std::int64_t n, std::int64_t features);

  // Packs the convolution weights of a first layer (ConvPoolShape) for conv_pool: packed [ceil(K /
  // B), 3 * 3 * C, B] from weight [K, 3, 3, C].
  void (*conv_pool_pack)(const float* weight, float* packed, const ConvPoolShape& shape);
  // Computes a first layer in one pass: 3x3 convolution, bias, ReLU and 2x2 max-pooling. x: the
  // samples, [n, H, W, C]. packed: the weights, packed by conv_pool_pack. y: the pooled map. winner
  // [n, ceil(K / B), pooled pixels, B] u8 receives the position of each maximum in its 2x2 window,
  // or 4 where the ReLU's output is 0. K is the number of output channels; B is `block`.
  void (*conv_pool)(const float* x, const float* packed, const float* bias, float* y,
                    std::uint8_t* winner, const ConvPoolShape& shape);
  // Computes the gradients of a first layer that conv_pool has computed: the weight gradient
  // dweight [K, 3, 3, C] and the bias gradient dbias [K]; overwrites both arrays. scratch is
  // [ceil(K / B), 3 * 3 * C, B] f32.
  void (*conv_pool_backward)(const float* x, const float* dy, const std::uint8_t* winner,
                             float* dweight, float* dbias, float* scratch,
                             const ConvPoolShape& shape);
};

// Returns the table of kernels compiled for `isa`, which this machine must support.
CpuKernels cpu_kernels(Isa isa) noexcept;

}  // namespace syncopate
