// 3x3 convolution + bias + ReLU + 2x2 max-pooling of samples with few channels, in one pass. The
// map of the convolution, the largest tensor of a small network, is never stored. In the backward
// pass only the maximum of each window has a gradient, and weight gradients are summed in
// registers.
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {
namespace {
constexpr int kTaps = 9;
constexpr int kCut = 4;  // stored instead of a maximum's position where the ReLU's output is 0

std::int64_t blocks_of(const ConvPoolShape& shape) {
  return (shape.out_channels + kBlock - 1) / kBlock;
}

// Stores one pooled pixel of one block of channels, and the position of its maximum.
void store_pooled(float* y, Vec v, std::int64_t n, std::int64_t block, std::int64_t pixel,
                  const ConvPoolShape& shape) {
  const std::int64_t pixels = shape.pooled_h * shape.pooled_w;
  if (!shape.channels_last) {
    store(y + ((n * blocks_of(shape) + block) * pixels + pixel) * kBlock, v);
    return;
  }
  float* out = y + (n * pixels + pixel) * shape.out_channels + block * kBlock;
  if ((block + 1) * kBlock <= shape.out_channels) {
    store(out, v);
    return;
  }
  for (int c = 0; block * kBlock + c < shape.out_channels; ++c) out[c] = v[c];
}

Vec load_pooled(const float* y, std::int64_t n, std::int64_t block, std::int64_t pixel,
                const ConvPoolShape& shape) {
  const std::int64_t pixels = shape.pooled_h * shape.pooled_w;
  if (!shape.channels_last) {
    return load(y + ((n * blocks_of(shape) + block) * pixels + pixel) * kBlock);
  }
  const float* in = y + (n * pixels + pixel) * shape.out_channels + block * kBlock;
  if ((block + 1) * kBlock <= shape.out_channels) return load(in);
  Vec v = {};
  for (int c = 0; block * kBlock + c < shape.out_channels; ++c) v[c] = in[c];
  return v;
}

// Computes kGroup adjacent pooled pixels. Their 4 * kGroup sums stay in registers, and each weight
// is loaded once for all pixels of the group.
template <int kChannels, int kGroup>
void forward_tile(const float* in, std::int64_t in_w, const float* packed, Vec bias, float* y,
                  std::uint8_t* winner, std::int64_t n, std::int64_t block, std::int64_t pixel,
                  const ConvPoolShape& shape) {
  Vec sums[kGroup][4] = {};
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
#pragma GCC unroll 3
    for (int s = 0; s < 3; ++s) {
#pragma GCC unroll 3
      for (int c = 0; c < kChannels; ++c) {
        const Vec weight = load(packed + ((r * 3 + s) * kChannels + c) * kBlock);
#pragma GCC unroll 4
        for (int g = 0; g < kGroup; ++g) {
#pragma GCC unroll 4
          for (int p = 0; p < 4; ++p) {
            sums[g][p] += weight * in[((p / 2 + r) * in_w + 2 * g + p % 2 + s) * kChannels + c];
          }
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < kGroup; ++g) {
    Vec best = sums[g][0];
    IntVec place = {};
#pragma GCC unroll 3
    for (int p = 1; p < 4; ++p) {
      const IntVec larger = sums[g][p] > best;
      best = larger ? sums[g][p] : best;
      place = larger ? IntVec{} + p : place;
    }
    best += bias;
    if (winner != nullptr) {
      place = best > 0.0F ? place : IntVec{} + kCut;
      const std::int64_t pixels = shape.pooled_h * shape.pooled_w;
      store_bytes(winner + ((n * blocks_of(shape) + block) * pixels + pixel + g) * kBlock, place);
    }
    store_pooled(y, positive_part(best), n, block, pixel + g, shape);
  }
}

template <int kChannels>
void forward(const float* x, const float* packed, const float* bias, float* y, std::uint8_t* winner,
             const ConvPoolShape& shape) {
  constexpr int kGroup = 3;
  const std::int64_t in_size = shape.in_h * shape.in_w * kChannels;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t block = 0; block < blocks_of(shape); ++block) {
      const float* weights = packed + block * kTaps * kChannels * kBlock;
      Vec block_bias = {};
      for (int c = 0; c < kBlock && block * kBlock + c < shape.out_channels; ++c) {
        block_bias[c] = bias[block * kBlock + c];
      }
      for (std::int64_t h = 0; h < shape.pooled_h; ++h) {
        const float* row = x + n * in_size + 2 * h * shape.in_w * kChannels;
        std::int64_t w = 0;
        for (; w + kGroup <= shape.pooled_w; w += kGroup) {
          forward_tile<kChannels, kGroup>(row + 2 * w * kChannels, shape.in_w, weights, block_bias,
                                          y, winner, n, block, h * shape.pooled_w + w, shape);
        }
        for (; w < shape.pooled_w; ++w) {
          forward_tile<kChannels, 1>(row + 2 * w * kChannels, shape.in_w, weights, block_bias, y,
                                     winner, n, block, h * shape.pooled_w + w, shape);
        }
      }
    }
  }
}

// Adds the weight gradients of one sample and one block of channels to scratch [9 * C, B], and its
// bias gradients to bias_sum [B].
template <int kChannels>
void backward_sample(const float* in, const float* dy, const std::uint8_t* winner, float* scratch,
                     float* bias_sum, std::int64_t n, std::int64_t block,
                     const ConvPoolShape& shape) {
  Vec sums[kTaps * kChannels] = {};
  Vec total = {};
  const std::uint8_t* places =
      winner + (n * blocks_of(shape) + block) * shape.pooled_h * shape.pooled_w * kBlock;
  for (std::int64_t h = 0; h < shape.pooled_h; ++h) {
    for (std::int64_t w = 0; w < shape.pooled_w; ++w) {
      const std::int64_t pixel = h * shape.pooled_w + w;
      const Vec gradient = load_pooled(dy, n, block, pixel, shape);
      const IntVec place = load_bytes(places + pixel * kBlock);
      total += place != kCut ? gradient : Vec{};
      const float* corner = in + (2 * h * shape.in_w + 2 * w) * kChannels;
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p) {
        const Vec share = place == p ? gradient : Vec{};
#pragma GCC unroll 3
        for (int r = 0; r < 3; ++r) {
#pragma GCC unroll 9
          for (int t = 0; t < 3 * kChannels; ++t) {
            sums[r * 3 * kChannels + t] +=
                share * corner[((p / 2 + r) * shape.in_w + p % 2) * kChannels + t];
          }
        }
      }
    }
  }
  for (int t = 0; t < kTaps * kChannels; ++t) {
    store(scratch + t * kBlock, load(scratch + t * kBlock) + sums[t]);
  }
  store(bias_sum, load(bias_sum) + total);
}

template <int kChannels>
void backward(const float* x, const float* dy, const std::uint8_t* winner, float* dweight,
              float* dbias, float* scratch, const ConvPoolShape& shape) {
  constexpr std::int64_t kBlockTaps = kTaps * kChannels;
  const std::int64_t in_size = shape.in_h * shape.in_w * kChannels;
  for (std::int64_t block = 0; block < blocks_of(shape); ++block) {
    float* sums = scratch + block * kBlockTaps * kBlock;
    for (std::int64_t i = 0; i < kBlockTaps * kBlock; i += kBlock) store(sums + i, Vec{});
    float bias_sum[kBlock] = {};
    for (std::int64_t n = 0; n < shape.n; ++n) {
      backward_sample<kChannels>(x + n * in_size, dy, winner, sums, bias_sum, n, block, shape);
    }
    for (int c = 0; c < kBlock && block * kBlock + c < shape.out_channels; ++c) {
      const std::int64_t k = block * kBlock + c;
      dbias[k] = bias_sum[c];
      for (std::int64_t t = 0; t < kBlockTaps; ++t) {
        dweight[k * kBlockTaps + t] = sums[t * kBlock + c];
      }
    }
  }
}

void conv_pool_pack(const float* weight, float* packed, const ConvPoolShape& shape) {
  const std::int64_t taps = std::int64_t{kTaps} * shape.in_channels;
  for (std::int64_t k = 0; k < blocks_of(shape) * kBlock; ++k) {
    float* out = packed + (k / kBlock) * taps * kBlock + k % kBlock;
    for (std::int64_t t = 0; t < taps; ++t) {
      out[t * kBlock] = k < shape.out_channels ? weight[k * taps + t] : 0.0F;
    }
  }
}

void conv_pool(const float* x, const float* packed, const float* bias, float* y,
               std::uint8_t* winner, const ConvPoolShape& shape) {
  switch (shape.in_channels) {
    case 1:
      return forward<1>(x, packed, bias, y, winner, shape);
    case 2:
      return forward<2>(x, packed, bias, y, winner, shape);
    default:
      return forward<3>(x, packed, bias, y, winner, shape);
  }
}

void conv_pool_backward(const float* x, const float* dy, const std::uint8_t* winner, float* dweight,
                        float* dbias, float* scratch, const ConvPoolShape& shape) {
  switch (shape.in_channels) {
    case 1:
      return backward<1>(x, dy, winner, dweight, dbias, scratch, shape);
    case 2:
      return backward<2>(x, dy, winner, dweight, dbias, scratch, shape);
    default:
      return backward<3>(x, dy, winner, dweight, dbias, scratch, shape);
  }
}

}  // namespace

void fill_conv_pool(CpuKernels& table) {
  table.conv_pool_pack = conv_pool_pack;
  table.conv_pool = conv_pool;
  table.conv_pool_backward = conv_pool_backward;
}

}  // namespace syncopate::SYNCOPATE_ISA
