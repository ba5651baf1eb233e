// The random augmentation of a sample: how its image is cropped and mirrored. It is drawn before
// the sample is read, so that a reader need decode only the part that the crop needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "models/base/enum_names.h"
#include "worker/input/sample.h"

namespace syncopate {

enum class Augment : std::uint8_t { kNone, kCropFlip, kRandomResizedCrop };

constexpr auto named_values(Augment /*type*/) {
  return std::array{Named{"none", Augment::kNone}, Named{"crop-flip", Augment::kCropFlip},
                    Named{"random-resized-crop", Augment::kRandomResizedCrop}};
}

// The augmentation of CIFAR-10 training: pad by 4 pixels, crop at random, mirror half of the
// images. Source: He et al. 2016, "Deep residual learning", section 4.2.
inline constexpr int kCropPadding = 4;  // black pixels on every side

struct Draw {
  Augment kind = Augment::kNone;
  // kCropFlip: the top row and left column of the crop in the unpadded image, from -kCropPadding to
  // kCropPadding.
  int dy = 0;
  int dx = 0;
  bool flip = false;  // whether left and right are swapped, after the crop
  // kRandomResizedCrop: the random bits to pass to random_resized_crop() when the size of the
  // picture is known.
  std::uint64_t bits = 0;
};

// Draws the augmentation of a sample. It depends on (seed, epoch, sample index) only, and not on
// rank, thread or batch.
Draw make_draw(Augment kind, std::uint64_t seed, std::int64_t epoch,
               std::int64_t sample_index) noexcept;

// Augments a label map [height, width] in place in the same way as apply_draw() augments its image.
// Pixels beyond the map become kUncounted. Only for kNone and kCropFlip.
void apply_draw_to_labels(const Draw& draw, int height, int width, std::span<std::int32_t> labels);

// Returns the random key of a sample, from which dropout draws (Batch::keys). It depends on (seed,
// epoch, sample index) only.
std::uint64_t make_key(std::uint64_t seed, std::int64_t epoch, std::int64_t sample_index) noexcept;

// Throws UsageError if the augmentation `kind` cannot be applied to samples like `image`: crop-flip
// needs images [H, W, C], and random-resized-crop needs u8 images with 1 or 3 channels.
void check_augment(Augment kind, const TensorSpec& image);

// Copies an image and augments the copy. image: shape [H, W, C], any dtype; with kNone any shape.
// `target` is the same memory as `source`, or does not overlap it.
void apply_draw(const Draw& draw, const TensorSpec& image, std::span<const std::byte> source,
                std::span<std::byte> target);

}  // namespace syncopate
