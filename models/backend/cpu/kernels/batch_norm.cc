// Batch norm over blocked maps. Short runs of pixels are summed in f32, relative to the first value
// of the run so that a large mean costs no precision, and the runs are added in f64.
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {
// Pixels summed in f32 at a time; a sum of 256 terms has a relative error of at most about 1e-6.
constexpr std::int64_t kRun = 256;
constexpr std::int64_t kUnroll = 4;

void add_run(Vec sum, double* total) {
  for (int i = 0; i < kBlock; ++i) total[i] += static_cast<double>(sum[i]);
}

std::int64_t shorter(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

void run_statistics(const float* x, std::int64_t count, double* sum, double* square_sum) {
  const Vec origin = load(x);
  Vec s[kUnroll] = {};
  Vec q[kUnroll] = {};
  std::int64_t i = 0;
  for (; i + kUnroll <= count; i += kUnroll) {
    for (std::int64_t u = 0; u < kUnroll; ++u) {
      const Vec v = load(x + (i + u) * kBlock) - origin;
      s[u] += v;
      q[u] += v * v;
    }
  }
  for (; i < count; ++i) {
    const Vec v = load(x + i * kBlock) - origin;
    s[0] += v;
    q[0] += v * v;
  }
  const Vec s_all = (s[0] + s[1]) + (s[2] + s[3]);
  const Vec q_all = (q[0] + q[1]) + (q[2] + q[3]);
  for (int c = 0; c < kBlock; ++c) {
    const double o = static_cast<double>(origin[c]);
    const double d = static_cast<double>(s_all[c]);
    sum[c] += d + o * static_cast<double>(count);
    square_sum[c] +=
        static_cast<double>(q_all[c]) + 2.0 * o * d + o * o * static_cast<double>(count);
  }
}

void batch_norm_statistics(const float* x, BlockedShape shape, double* sums) {
  const std::int64_t channels = shape.blocks * kBlock;
  for (std::int64_t c = 0; c < 2 * channels; ++c) sums[c] = 0.0;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      const float* map = x + (n * shape.blocks + b) * shape.pixels * kBlock;
      for (std::int64_t p = 0; p < shape.pixels; p += kRun) {
        run_statistics(map + p * kBlock, shorter(kRun, shape.pixels - p), sums + b * kBlock,
                       sums + channels + b * kBlock);
      }
    }
  }
}

void batch_norm_apply(const float* x, const float* added, float* y, BlockedShape shape,
                      const float* scale, const float* shift, bool relu) {
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      const std::int64_t offset = (n * shape.blocks + b) * shape.pixels * kBlock;
      const float* in = x + offset;
      float* out = y + offset;
      const Vec s = load(scale + b * kBlock);
      const Vec t = load(shift + b * kBlock);
      const std::int64_t end = shape.pixels * kBlock;
      if (added == nullptr) {
        if (relu) {
          for (std::int64_t i = 0; i < end; i += kBlock) {
            store(out + i, positive_part(load(in + i) * s + t));
          }
        } else {
          for (std::int64_t i = 0; i < end; i += kBlock) store(out + i, load(in + i) * s + t);
        }
        continue;
      }
      const float* other = added + offset;
      for (std::int64_t i = 0; i < end; i += kBlock) {
        const Vec v = (load(in + i) * s + t) + load(other + i);
        store(out + i, relu ? positive_part(v) : v);
      }
    }
  }
}

enum class Mask { kNone, kFromInput, kFromOutput };

// Sums the gradients of one run of pixels in one block of channels. Variants are template
// arguments, so that the loop has no branch.
template <bool kTwo, Mask kMask, bool kStore>
void backward_run(const BatchNormBackward& args, std::int64_t offset, std::int64_t count,
                  std::int64_t c, double* sum, double* product_sum) {
  const Vec scale = load(args.scale + c);
  const Vec shift = load(args.shift + c);
  const Vec mean = load(args.mean + c);
  Vec s[2] = {};
  Vec q[2] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = offset + i * kBlock;
    Vec dz = load(args.dy + at);
    if constexpr (kTwo) dz += load(args.dy2 + at);
    const Vec x = load(args.x + at);
    if constexpr (kMask == Mask::kFromInput) dz = x * scale + shift > 0.0F ? dz : Vec{};
    if constexpr (kMask == Mask::kFromOutput) dz = load(args.y + at) > 0.0F ? dz : Vec{};
    if constexpr (kStore) store(args.dz + at, dz);
    s[i & 1] += dz;
    q[i & 1] += dz * (x - mean);
  }
  const Vec inverse = load(args.inverse_deviation + c);
  add_run(s[0] + s[1], sum);
  add_run((q[0] + q[1]) * inverse, product_sum);
}

template <bool kTwo, Mask kMask, bool kStore>
void backward_sums(const BatchNormBackward& args, BlockedShape shape, double* sums) {
  const std::int64_t channels = shape.blocks * kBlock;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      const std::int64_t offset = (n * shape.blocks + b) * shape.pixels * kBlock;
      for (std::int64_t p = 0; p < shape.pixels; p += kRun) {
        backward_run<kTwo, kMask, kStore>(args, offset + p * kBlock,
                                          shorter(kRun, shape.pixels - p), b * kBlock,
                                          sums + b * kBlock, sums + channels + b * kBlock);
      }
    }
  }
}

template <bool kTwo, Mask kMask>
void backward_sums(const BatchNormBackward& args, BlockedShape shape, double* sums) {
  if (args.dz != nullptr) return backward_sums<kTwo, kMask, true>(args, shape, sums);
  return backward_sums<kTwo, kMask, false>(args, shape, sums);
}

template <bool kTwo>
void backward_sums(const BatchNormBackward& args, BlockedShape shape, double* sums) {
  if (!args.relu) return backward_sums<kTwo, Mask::kNone>(args, shape, sums);
  if (args.y != nullptr) return backward_sums<kTwo, Mask::kFromOutput>(args, shape, sums);
  return backward_sums<kTwo, Mask::kFromInput>(args, shape, sums);
}

template <bool kMask>
void backward_apply(const BatchNormInputGradient& args, BlockedShape shape) {
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t b = 0; b < shape.blocks; ++b) {
      const std::int64_t offset = (n * shape.blocks + b) * shape.pixels * kBlock;
      const std::int64_t c = b * kBlock;
      const Vec a = load(args.a + c);
      const Vec m = load(args.m + c);
      const Vec mean = load(args.mean + c);
      const Vec k = load(args.k + c);
      const Vec scale = kMask ? load(args.scale + c) : Vec{};
      const Vec shift = kMask ? load(args.shift + c) : Vec{};
      for (std::int64_t i = offset; i < offset + shape.pixels * kBlock; i += kBlock) {
        const Vec x = load(args.x + i);
        Vec dz = load(args.dz + i);
        if constexpr (kMask) dz = x * scale + shift > 0.0F ? dz : Vec{};
        store(args.dx + i, a * (dz - m) - (x - mean) * k);
      }
    }
  }
}

void batch_norm_backward_sums(const BatchNormBackward& args, BlockedShape shape, double* sums) {
  for (std::int64_t c = 0; c < 2 * shape.blocks * kBlock; ++c) sums[c] = 0.0;
  if (args.dy2 != nullptr) return backward_sums<true>(args, shape, sums);
  return backward_sums<false>(args, shape, sums);
}

void batch_norm_backward_apply(const BatchNormInputGradient& args, BlockedShape shape) {
  if (args.scale != nullptr) return backward_apply<true>(args, shape);
  return backward_apply<false>(args, shape);
}

}  // namespace

void fill_batch_norm(CpuKernels& table) {
  table.batch_norm_statistics = batch_norm_statistics;
  table.batch_norm_apply = batch_norm_apply;
  table.batch_norm_backward_sums = batch_norm_backward_sums;
  table.batch_norm_backward_apply = batch_norm_backward_apply;
}

}  // namespace syncopate::SYNCOPATE_ISA
