// The augmentation of ImageNet training: a random part of the picture is stretched to the sample's
// size. Source: torchvision.transforms.RandomResizedCrop with its defaults, after Szegedy et al.
// 2015, "Going deeper with convolutions", section 6.
#pragma once

#include <cstdint>

#include "worker/input/image/orientation.h"

namespace syncopate {

// Draws a part of a picture of width x height pixels, with 8 % to 100 % of the area and a ratio of
// width to height between 3/4 and 4/3, at a random position. If ten draws do not fit into the
// picture, returns the largest central part within these ratios. The result depends on the
// arguments only and is the same on every machine.
PixelRectangle random_resized_crop(std::uint64_t bits, std::int64_t width,
                                   std::int64_t height) noexcept;

}  // namespace syncopate
