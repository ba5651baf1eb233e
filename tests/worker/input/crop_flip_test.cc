#include "worker/input/draw.h"

#include <gtest/gtest.h>

#include <set>
#include <span>
#include <vector>

namespace syncopate {
namespace {

using Image = std::vector<std::uint8_t>;

struct Crop {
  int dy;
  int dx;
  bool flip;
};

Image apply(const Crop& crop, const Shape& shape, const Image& image) {
  const Draw draw{Augment::kCropFlip, crop.dy, crop.dx, crop.flip};
  const TensorSpec spec{"x", DType::kU8, shape};
  Image target(image.size(), 99);
  apply_draw(draw, spec, std::as_bytes(std::span(image)),
             std::as_writable_bytes(std::span(target)));
  Image in_place = image;
  const auto bytes = std::as_writable_bytes(std::span(in_place));
  apply_draw(draw, spec, bytes, bytes);
  EXPECT_EQ(in_place, target);
  return target;
}

TEST(CropFlip, LeavesTheImageUnchangedWithoutShift) {
  EXPECT_EQ(apply({0, 0, false}, {2, 2, 1}, {1, 2, 3, 4}), (Image{1, 2, 3, 4}));
}

TEST(CropFlip, ShiftsBlackIn) {
  const Image image = {1, 2, 3, 4, 5, 6};  // two rows of three
  EXPECT_EQ(apply({1, 0, false}, {2, 3, 1}, image), (Image{4, 5, 6, 0, 0, 0}));
  EXPECT_EQ(apply({-1, 0, false}, {2, 3, 1}, image), (Image{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(apply({0, 1, false}, {2, 3, 1}, image), (Image{2, 3, 0, 5, 6, 0}));
  EXPECT_EQ(apply({0, -2, false}, {2, 3, 1}, image), (Image{0, 0, 1, 0, 0, 4}));
}

TEST(CropFlip, IsAllBlackWhenTheCropLeavesASmallImage) {
  EXPECT_EQ(apply({0, 4, true}, {1, 3, 1}, {1, 2, 3}), (Image{0, 0, 0}));
  EXPECT_EQ(apply({-4, -4, true}, {1, 3, 1}, {1, 2, 3}), (Image{0, 0, 0}));
}

TEST(CropFlip, MirrorsAfterTheCropAndKeepsChannelsInOrder) {
  EXPECT_EQ(apply({0, 1, true}, {1, 3, 2}, {1, 2, 3, 4, 5, 6}), (Image{0, 0, 5, 6, 3, 4}));
}

TEST(CropFlip, MovesWholePixelsOfOtherTypes) {
  const std::vector<float> image = {1, 2, 3, 4, 5, 6};  // three pixels of two channels
  std::vector<float> target(6);
  apply_draw({Augment::kCropFlip, 0, 1, true}, {"x", DType::kF32, {1, 3, 2}},
             std::as_bytes(std::span(image)), std::as_writable_bytes(std::span(target)));
  EXPECT_EQ(target, (std::vector<float>{0, 0, 5, 6, 3, 4}));
}

TEST(CropFlip, IsAFunctionOfSeedEpochAndSample) {
  const auto drawn = [](std::uint64_t seed, std::int64_t epoch) {
    std::vector<int> numbers;
    for (std::int64_t i = 0; i < 20; ++i) {
      const Draw crop = make_draw(Augment::kCropFlip, seed, epoch, i);
      numbers.insert(numbers.end(), {crop.dy, crop.dx, crop.flip ? 1 : 0});
    }
    return numbers;
  };
  EXPECT_EQ(drawn(1, 0), drawn(1, 0));
  EXPECT_NE(drawn(1, 0), drawn(1, 1));
  EXPECT_NE(drawn(1, 0), drawn(2, 0));
}

TEST(CropFlip, ReachesEveryPlaceAndFlipsHalf) {
  std::set<int> dy;
  std::set<int> dx;
  int flips = 0;
  for (std::int64_t i = 0; i < 2000; ++i) {
    const Draw crop = make_draw(Augment::kCropFlip, 7, 3, i);
    dy.insert(crop.dy);
    dx.insert(crop.dx);
    flips += crop.flip ? 1 : 0;
  }
  const std::set<int> all = {-4, -3, -2, -1, 0, 1, 2, 3, 4};
  EXPECT_EQ(dy, all);
  EXPECT_EQ(dx, all);
  EXPECT_NEAR(flips, 1000, 90);  // four standard deviations
}

}  // namespace
}  // namespace syncopate
