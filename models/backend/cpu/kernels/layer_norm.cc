// Layer norm over blocked maps and over vectors. The statistics of a pixel are sums over its blocks
// of channels: in f32 for each channel of a block, then in f64. The gradients of weight and bias
// are sums over all pixels: in f32 over short runs of pixels, and in f64 over the runs.
#include "models/backend/cpu/kernels/channel_rows.h"
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {
// Pixels summed in f32 at a time, as in batch norm: a relative error of at most about 1e-6.
constexpr int kRun = 256;

void parameter_gradients(const LayerNormBackward& args, const ChannelRows& shape) {
  const Steps steps(shape);
  for (std::int64_t b = 0; b < steps.blocks; ++b) {
    const std::int64_t left = shape.channels - b * kBlock;
    double dweight[kBlock] = {};
    double dbias[kBlock] = {};
    Vec products = {};
    Vec gradients = {};
    int run = 0;
    const auto end_run = [&] {
      for (int c = 0; c < kBlock; ++c) {
        dweight[c] += static_cast<double>(products[c]);
        dbias[c] += static_cast<double>(gradients[c]);
      }
      products = gradients = Vec{};
      run = 0;
    };
    for_each_pixel(shape, steps, [&](std::int64_t first, std::int64_t pixel) {
      const std::int64_t at = first + b * steps.block;
      const Vec dy = load_part(args.dy + at, left);
      const Vec centred = load_part(args.x + at, left) - args.mean[pixel];
      products += dy * (centred * args.inverse_deviation[pixel]);
      gradients += dy;
      if (++run == kRun) end_run();
    });
    end_run();
    for (int c = 0; c < kBlock && c < left; ++c) {
      args.dweight[b * kBlock + c] = static_cast<float>(dweight[c]);
      args.dbias[b * kBlock + c] = static_cast<float>(dbias[c]);
    }
  }
}

void layer_norm(const float* x, float* y, const ChannelRows& shape, const float* weight,
                const float* bias, float epsilon, float* mean, float* inverse_deviation) {
  const Steps steps(shape);
  const auto channels = static_cast<double>(shape.channels);
  for_each_pixel(shape, steps, [&](std::int64_t first, std::int64_t pixel) {
    const auto block_at = [&](std::int64_t b) {
      return load_part(x + first + b * steps.block, shape.channels - b * kBlock);
    };
    Vec sum = {};
    for (std::int64_t b = 0; b < steps.blocks; ++b) sum += block_at(b);
    const auto m = static_cast<float>(sum_of(sum) / channels);
    const auto centred_at = [&](std::int64_t b) {
      return first_of(block_at(b) - m, shape.channels - b * kBlock);
    };
    Vec squares = {};
    for (std::int64_t b = 0; b < steps.blocks; ++b) squares += centred_at(b) * centred_at(b);
    const double variance = sum_of(squares) / channels;
    const auto inverse =
        static_cast<float>(1.0 / __builtin_sqrt(variance + static_cast<double>(epsilon)));
    for (std::int64_t b = 0; b < steps.blocks; ++b) {
      const std::int64_t left = shape.channels - b * kBlock;
      const Vec out = centred_at(b) * inverse * load_part(weight + b * kBlock, left) +
                      load_part(bias + b * kBlock, left);
      // A whole block of a map is stored: the channels that pad it become zero.
      store_part(y + first + b * steps.block, out, shape.is_blocked ? kBlock : left);
    }
    if (mean != nullptr) mean[pixel] = m;
    if (inverse_deviation != nullptr) inverse_deviation[pixel] = inverse;
  });
}

// Source: the chain rule through mean and variance, as for batch norm (Ioffe and Szegedy 2015,
// section 3), with the sums over channels.
void layer_norm_backward(const LayerNormBackward& args, const ChannelRows& shape) {
  parameter_gradients(args, shape);
  if (args.dx == nullptr) return;
  const Steps steps(shape);
  const auto channels = static_cast<double>(shape.channels);
  for_each_pixel(shape, steps, [&](std::int64_t first, std::int64_t pixel) {
    const float mean = args.mean[pixel];
    const float inverse = args.inverse_deviation[pixel];
    const auto gradient_at = [&](std::int64_t b) {
      const std::int64_t left = shape.channels - b * kBlock;
      return load_part(args.dy + first + b * steps.block, left) *
             load_part(args.weight + b * kBlock, left);
    };
    const auto normalised_at = [&](std::int64_t b) {
      const std::int64_t left = shape.channels - b * kBlock;
      return (load_part(args.x + first + b * steps.block, left) - mean) * inverse;
    };
    Vec sum = {};
    Vec product_sum = {};
    for (std::int64_t b = 0; b < steps.blocks; ++b) {
      const Vec gradient = gradient_at(b);
      sum += gradient;
      product_sum += gradient * normalised_at(b);
    }
    const auto of_mean = static_cast<float>(sum_of(sum) / channels);
    const auto of_variance = static_cast<float>(sum_of(product_sum) / channels);
    for (std::int64_t b = 0; b < steps.blocks; ++b) {
      const Vec dx = inverse * (gradient_at(b) - of_mean - normalised_at(b) * of_variance);
      store_part(args.dx + first + b * steps.block, dx, shape.channels - b * kBlock);
    }
  });
}

}  // namespace

void fill_layer_norm(CpuKernels& table) {
  table.layer_norm = layer_norm;
  table.layer_norm_backward = layer_norm_backward;
}

}  // namespace syncopate::SYNCOPATE_ISA
