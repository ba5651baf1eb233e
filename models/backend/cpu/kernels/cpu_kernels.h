// The kernels of the CPU backend for operations that are bound by memory bandwidth, one table of
// functions per instruction set. Convolutions and matrix products are computed by oneDNN.
//
// Maps are blocked: [N, ceil(C / B), H * W, B] f32, where B is `block`. Channels beyond C are zero
// in values; in gradients they are undefined and never read. Arrays per channel have ceil(C / B) *
// B elements. A function computes the samples of one lane; n = 0 has no effect.
#pragma once

#include <cstdint>

#include "models/graph/activation.h"

namespace syncopate {

enum class Isa;  // models/base/isa.h is not included, because it includes library templates

// The shape [n, blocks, pixels, B] of a map with blocked channels.
struct BlockedShape {
  std::int64_t n;
  std::int64_t blocks;
  std::int64_t pixels;
};

// Pooling: square windows over maps of in_h x in_w pixels. Every window contains at least one pixel
// of the map. For the maximum, padding pixels are ignored; for the mean, they are zeros.
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

// Upsampling of maps of h x w pixels by a whole number.
struct UpsampleShape {
  std::int64_t n;
  std::int64_t blocks;
  std::int64_t h;
  std::int64_t w;
  int scale;
  bool is_bilinear;
};

// The fused first layer: 3x3 convolution with stride 1 and without padding + bias + ReLU + 2x2
// max-pooling of samples with few channels.
struct ConvPoolShape {
  std::int64_t n;
  std::int64_t in_h;
  std::int64_t in_w;
  int in_channels;  // number of input channels: 1 to 3
  std::int64_t out_channels;
  std::int64_t pooled_h;
  std::int64_t pooled_w;
  bool channels_last;  // the pooled map is [N, H, W, K] instead of blocked
};

struct BatchNormBackward {
  const float* dy;
  const float* dy2;    // second output gradient, added to dy; may be null
  const float* x;      // the normalised input
  const float* y;      // the ReLU's output; null if its mask is computed from x
  const float* scale;  // of batch norm: y = x * scale + shift (+ added)
  const float* shift;
  const float* mean;
  const float* inverse_deviation;
  float* dz;  // receives (dy + dy2), masked by the ReLU, unless null; may be dy's memory
  bool relu;
};

struct BatchNormInputGradient {
  const float* dz;
  const float* x;
  float* dx;  // the input gradient; may be dz's memory
  const float* a;
  const float* m;
  const float* mean;
  const float* k;
  // Constants of the ReLU's mask, x * scale + shift > 0; null if dz has been masked already.
  const float* scale;
  const float* shift;
};

// The channels of each pixel: of a map [n, ceil(channels / B), pixels, B], or of vectors [n,
// channels], which have one pixel.
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
  const float* mean;               // [n, pixels], as layer_norm() wrote it
  const float* inverse_deviation;  // [n, pixels]
  float* dx;                       // the input gradient, unless null; may be dy's memory
  float* dweight;                  // [channels], overwritten
  float* dbias;                    // [channels], overwritten
};

// How many bytes behind the elements of a dropout's masks the kernels may read and write.
inline constexpr std::int64_t kMaskSlack = 64;

struct CpuKernels {
  int block;

  // These functions normalise u8 samples x [n, pixels, channels] to f32: y = x * scale[c] +
  // shift[c]. The planar y is [n, channels, pixels], the interleaved y [n, pixels, channels].
  void (*pixels_to_planar)(const std::uint8_t* x, float* y, std::int64_t n, std::int64_t pixels,
                           int channels, const float* scale, const float* shift);
  void (*pixels_to_interleaved)(const std::uint8_t* x, float* y, std::int64_t n,
                                std::int64_t pixels, int channels, const float* scale,
                                const float* shift);

  // Computes the forward sums of batch norm, sums [2, channels] f64: of x and of x squared.
  void (*batch_norm_statistics)(const float* x, BlockedShape shape, double* sums);
  // Applies batch norm: y = x * scale + shift (+ added), then ReLU if `relu`. `added` may be null.
  void (*batch_norm_apply)(const float* x, const float* added, float* y, BlockedShape shape,
                           const float* scale, const float* shift, bool relu);
  // Computes dz = dy (+ dy2), or 0 where the ReLU's output is 0, and the backward sums of batch
  // norm, sums [2, channels] f64: of dz and of dz * (x - mean) * inverse_deviation.
  void (*batch_norm_backward_sums)(const BatchNormBackward& args, BlockedShape shape, double* sums);
  // Batch norm backward: dx = a * (dz - m) - (x - mean) * k, with one a, m, mean and k per channel.
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
  // Computes the input gradient of ReLU: dx = y > 0 ? dy : 0
  void (*relu_backward)(const float* dy, const float* y, float* dx, std::int64_t count);
  void (*add)(const float* a, const float* b, float* y, std::int64_t count);
  // Computes y = a * b.
  void (*multiply)(const float* a, const float* b, float* y, std::int64_t count);
  // Computes y = x * factor, with one factor for each sample and channel, [n, factors]. factors is
  // C, or the channels of whole blocks.
  void (*multiply_channels)(const float* x, const float* factor, float* y, BlockedShape shape,
                            std::int64_t factors);
  // Computes the gradient of the factors, the sums over the pixels of dy * x.
  void (*multiply_channels_gradient)(const float* dy, const float* x, float* dfactor,
                                     BlockedShape shape, std::int64_t factors);

  // An activation, y = f(x), and its backward pass, dx = f'(x) * dy. The exponential has a
  // relative error of 2e-7, the error function an absolute one.
  void (*activate)(const ActivationOp& op, const float* x, float* y, std::int64_t count);
  void (*activate_backward)(const ActivationOp& op, const float* x, const float* dy, float* dx,
                            std::int64_t count);
  // Softmax over the channels of each pixel, and its backward pass from the output y.
  void (*softmax)(const float* x, float* y, const ChannelRows& shape);
  void (*softmax_backward)(const float* y, const float* dy, float* dx, const ChannelRows& shape);
  // Sets the channels beyond C of a blocked map to zero.
  void (*clear_padding)(float* y, BlockedShape shape, std::int64_t channels);

  // Copies `count` channels of x [n, x_blocks, pixels, B], from channel x_first on, to the channels
  // of y [n, y_blocks, pixels, B] from y_first on.
  void (*copy_channels)(const float* x, std::int64_t x_blocks, std::int64_t x_first, float* y,
                        std::int64_t y_blocks, std::int64_t y_first, std::int64_t n,
                        std::int64_t pixels, std::int64_t count);

  // Max-pooling. winner [n, blocks, out pixels, B] u8 receives the position of each maximum in its
  // window: row-major, counting padding, the first of equal maxima. winner may be null.
  void (*max_pool)(const float* x, float* y, std::uint8_t* winner, const PoolShape& shape);
  void (*max_pool_backward)(const float* dy, const std::uint8_t* winner, float* dx,
                            const PoolShape& shape);

  // Average pooling: the mean of a window. Its padding pixels are zeros.
  void (*average_pool)(const float* x, float* y, const PoolShape& shape);
  void (*average_pool_backward)(const float* dy, float* dx, const PoolShape& shape);

  // Upsampling, x [n, blocks, h, w, B] to y with sides of scale * h and scale * w.
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

  // ResNet's shortcut: y has every stride-th pixel of x in its first in_blocks blocks, and zeros in
  // the others. shape.blocks, y's number of blocks, is at least in_blocks.
  void (*shortcut)(const float* x, float* y, const PoolShape& shape, std::int64_t in_blocks);
  void (*shortcut_backward)(const float* dy, float* dx, const PoolShape& shape,
                            std::int64_t in_blocks);

  // Adds a bias: y [n, features] += bias, then ReLU if `relu`.
  void (*add_bias)(float* y, const float* bias, std::int64_t n, std::int64_t features, bool relu);
  // Computes the gradient of a bias, dbias [features] = sum over n of dy [n, features].
  void (*bias_gradient)(const float* dy, float* dbias, std::int64_t n, std::int64_t features);

  // Packs weights: packed [ceil(K / B), 3 * 3 * C, B] from weight [K, 3, 3, C].
  void (*conv_pool_pack)(const float* weight, float* packed, const ConvPoolShape& shape);
  // x [n, H, W, C], the samples. winner [n, ceil(K / B), pooled pixels, B] u8 receives the position
  // of the maximum in its 2x2 window, or 4 where the ReLU's output is 0.
  void (*conv_pool)(const float* x, const float* packed, const float* bias, float* y,
                    std::uint8_t* winner, const ConvPoolShape& shape);
  // Overwrites the weight gradients dweight [K, 3, 3, C] and bias gradients dbias [K] of the fused
  // first layer. scratch is [ceil(K / B), 3 * 3 * C, B] f32.
  void (*conv_pool_backward)(const float* x, const float* dy, const std::uint8_t* winner,
                             float* dweight, float* dbias, float* scratch,
                             const ConvPoolShape& shape);
};

// Returns the table of kernels compiled for `isa`, which this machine must support.
const CpuKernels& cpu_kernels(Isa isa) noexcept;

}  // namespace syncopate
