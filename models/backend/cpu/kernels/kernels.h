// The element-wise arithmetic of the CPU backend, one table of functions per instruction set. What
// is worth a matrix product goes to oneDNN; what is bound by memory is here, fused.
//
// Maps are blocked: [N, ceil(C / B), H * W, B] f32, where B is `block`; channels beyond C are zero
// and stay zero; in a gradient they may hold anything and nobody reads them. Per-channel arrays
// have ceil(C / B) * B elements. Functions work on one lane's samples; n = 0 does nothing.
#pragma once

#include <cstdint>

namespace syncopate {

enum class Isa;  // models/base/isa.h; not included, it brings library templates

// [n, blocks, pixels, B]
struct BlockedShape {
  std::int64_t n;
  std::int64_t blocks;
  std::int64_t pixels;
};

// A square window over maps h x w. Of a window that reaches into the padding only what lies inside
// counts, which is never nothing.
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

// conv 3x3, stride 1, no padding + bias + ReLU + max-pool 2x2 over samples with few channels.
struct ConvPoolShape {
  std::int64_t n;
  std::int64_t in_h;
  std::int64_t in_w;
  int in_channels;  // 1 to 3
  std::int64_t out_channels;
  std::int64_t pooled_h;
  std::int64_t pooled_w;
  bool channels_last;  // pooled map: [N, H, W, K] instead of blocked
};

struct BatchNormBackward {
  const float* dy;
  const float* dy2;  // added to dy; may be null
  const float* x;    // the normalised input
  const float* y;    // the group's output; read for the ReLU's mask when a sum was added, else null
  const float* scale;  // y = x * scale + shift (+ added)
  const float* shift;
  const float* mean;
  const float* inverse_deviation;
  float* dz;  // out: gradient of the sum; dy's own memory or other; null to keep it to oneself
  bool relu;
};

struct BatchNormInputGradient {
  const float* dz;
  const float* x;
  float* dx;  // may be dz's memory
  const float* a;
  const float* m;
  const float* mean;
  const float* k;
  // Given when dz still has what the ReLU cut, else null: y = x * scale + shift.
  const float* scale;
  const float* shift;
};

struct CpuKernels {
  int block;

  // y = x * scale[c] + shift[c] of u8 pixels [n, pixels, channels], into [n, channels, pixels]
  // (planar), the same order (else), or blocked.
  void (*pixels_to_planar)(const std::uint8_t* x, float* y, std::int64_t n, std::int64_t pixels,
                           int channels, const float* scale, const float* shift);
  void (*pixels_to_interleaved)(const std::uint8_t* x, float* y, std::int64_t n,
                                std::int64_t pixels, int channels, const float* scale,
                                const float* shift);

  // sums [2, channels]: of x and of x squared, in double.
  void (*batch_norm_statistics)(const float* x, BlockedShape shape, double* sums);
  // y = [relu](x * scale + shift [+ added]); added may be null.
  void (*batch_norm_apply)(const float* x, const float* added, float* y, BlockedShape shape,
                           const float* scale, const float* shift, bool relu);
  // dz = (dy [+ dy2]) where the ReLU let it pass; sums [2, channels]: of dz and of dz * xhat.
  void (*batch_norm_backward_sums)(const BatchNormBackward& args, BlockedShape shape, double* sums);
  // dx = a * (dz - m) - (x - mean) * k, all per channel.
  void (*batch_norm_backward_apply)(const BatchNormInputGradient& args, BlockedShape shape);

  void (*relu)(const float* x, float* y, std::int64_t count);
  // dx = y > 0 ? dy : 0
  void (*relu_backward)(const float* dy, const float* y, float* dx, std::int64_t count);
  void (*add)(const float* a, const float* b, float* y, std::int64_t count);

  // Saves the winner's place in its window (row-major, padding counted, first on ties), [n, blocks,
  // out pixels, B] u8.
  void (*max_pool)(const float* x, float* y, std::uint8_t* winner, const PoolShape& shape);
  void (*max_pool_backward)(const float* dy, const std::uint8_t* winner, float* dx,
                            const PoolShape& shape);

  // y [n, channels]
  void (*global_average_pool)(const float* x, float* y, BlockedShape shape, std::int64_t channels);
  void (*global_average_pool_backward)(const float* dy, float* dx, BlockedShape shape,
                                       std::int64_t channels);

  // Blocked to [n, pixels, channels] and back.
  void (*blocked_to_interleaved)(const float* x, float* y, BlockedShape shape,
                                 std::int64_t channels);
  void (*interleaved_to_blocked)(const float* x, float* y, BlockedShape shape,
                                 std::int64_t channels);

  // Every stride-th pixel of the first blocks, zero in the others. out.blocks >= in_blocks.
  void (*shortcut)(const float* x, float* y, const PoolShape& shape, std::int64_t in_blocks);
  void (*shortcut_backward)(const float* dy, float* dx, const PoolShape& shape,
                            std::int64_t in_blocks);

  // y [n, features]: y += bias, then ReLU if asked.
  void (*add_bias)(float* y, const float* bias, std::int64_t n, std::int64_t features, bool relu);
  // dbias [features] = sum over n of dy [n, features].
  void (*bias_gradient)(const float* dy, float* dbias, std::int64_t n, std::int64_t features);

  // packed [ceil(K / B), 3 * 3 * C, B] from weight [K, 3, 3, C].
  void (*conv_pool_pack)(const float* weight, float* packed, const ConvPoolShape& shape);
  // x [n, H, W, C]; winner [n, ceil(K / B), pooled pixels, B] u8: place in the window, 4 where the
  // ReLU cut.
  void (*conv_pool)(const float* x, const float* packed, const float* bias, float* y,
                    std::uint8_t* winner, const ConvPoolShape& shape);
  // dweight [K, 3, 3, C] and dbias [K] are overwritten; scratch as `packed`.
  void (*conv_pool_backward)(const float* x, const float* dy, const std::uint8_t* winner,
                             float* dweight, float* dbias, float* scratch,
                             const ConvPoolShape& shape);
};

// The machine must support `isa`.
const CpuKernels& cpu_kernels(Isa isa) noexcept;

}  // namespace syncopate
