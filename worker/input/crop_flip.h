// Pad by 4, crop at random, mirror half of the images: the augmentation of CIFAR-10 training.
// Source: He et al. 2016, "Deep residual learning", section 4.2.
#pragma once

#include <cstdint>
#include <span>

#include "models/tensor/tensor.h"

namespace syncopate {

inline constexpr int kCropPadding = 4;  // black pixels on every side

struct CropFlip {
  int dy = 0;  // the crop's corner in the unpadded image: -kCropPadding .. kCropPadding
  int dx = 0;
  bool flip = false;  // left and right are swapped, after the crop
};

// A function of (seed, epoch, sample index): never of the rank, the thread or the batch.
CropFlip draw_crop_flip(std::uint64_t seed, std::int64_t epoch, std::int64_t sample_index) noexcept;

// source and target [H, W, C] u8, not overlapping.
void apply_crop_flip(const CropFlip& crop, const Shape& shape, std::span<const std::uint8_t> source,
                     std::span<std::uint8_t> target);

}  // namespace syncopate
