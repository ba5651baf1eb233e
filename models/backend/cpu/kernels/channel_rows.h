// Visits every pixel of a batch of maps with blocked channels, or every vector of a batch. A vector
// counts as a map with one pixel. Used by kernels that process one pixel after another, such as
// layer norm and softmax; they divide the channels of a pixel into blocks of kBlock.
#pragma once

#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {

// The distances in memory between the parts of a map, in elements. block: the distance from one
// block of channels of a pixel to the next block. sample: the distance from one sample to the next
// sample. blocks: the number of blocks of a pixel.
struct Steps {
  explicit Steps(const ChannelRows& shape)
      : blocks((shape.channels + kBlock - 1) / kBlock),
        block(shape.is_blocked ? shape.pixels * kBlock : kBlock),
        sample(shape.is_blocked ? blocks * block : shape.channels) {}
  std::int64_t blocks;
  std::int64_t block;
  std::int64_t sample;
};

// Returns the first `left` elements of v, followed by zeros.
static inline Vec first_of(Vec v, std::int64_t left) {
  for (std::int64_t i = left; i < kBlock; ++i) v[i] = 0.0F;
  return v;
}

static inline double sum_of(Vec v) {
  double sum = 0.0;
  for (int i = 0; i < kBlock; ++i) sum += static_cast<double>(v[i]);
  return sum;
}

// Calls visit(offset of the pixel's first block, index of the pixel) for every pixel.
template <typename Visit>
static inline void for_each_pixel(const ChannelRows& shape, const Steps& steps,
                                  const Visit& visit) {
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t p = 0; p < shape.pixels; ++p) {
      visit(n * steps.sample + p * kBlock, n * shape.pixels + p);
    }
  }
}

}  // namespace syncopate::SYNCOPATE_ISA
