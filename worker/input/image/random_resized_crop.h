// The augmentation of ImageNet training: a random part of the picture, stretched to the sample's
// size. Source: torchvision.transforms.RandomResizedCrop with its defaults, after Szegedy et al.
// 2015, "Going deeper with convolutions", section 6.
#pragma once

#include <cstdint>

#include "worker/input/image/orientation.h"

namespace syncopate {

// Draws the part: 8 % to 100 % of the area, width / height between 3/4 and 4/3, at a random place.
// After ten parts that do not fit, the largest central part within these ratios is taken. A
// function of its arguments, with the same result on every machine.
PixelRectangle random_resized_crop(std::uint64_t bits, std::int64_t width,
                                   std::int64_t height) noexcept;

}  // namespace syncopate
