#include "worker/input/image/random_resized_crop.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/packed_files.h"
#include "tests/worker/input/picture_folder.h"
#include "tests/worker/input/read_sample.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/image/image_decoder.h"

namespace syncopate {
namespace {

TEST(RandomResizedCrop, StaysInThePictureAndItsBounds) {
  double sum_of_areas = 0;
  constexpr int kDraws = 4000;
  for (std::uint64_t bits = 0; bits < kDraws; ++bits) {
    const PixelRectangle part = random_resized_crop(bits, 500, 375);
    ASSERT_GE(part.x, 0);
    ASSERT_GE(part.y, 0);
    ASSERT_LE(part.x + part.width, 500);
    ASSERT_LE(part.y + part.height, 375);
    const double ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
    EXPECT_GT(ratio, 0.74);  // 3/4, and rounding to pixels
    EXPECT_LT(ratio, 1.35);
    const double area = static_cast<double>(part.width * part.height) / (500.0 * 375.0);
    EXPECT_GT(area, 0.079);
    sum_of_areas += area;
  }
  // The mean of 100,000 draws by torchvision's function for this size: large parts seldom fit.
  EXPECT_NEAR(sum_of_areas / kDraws, 0.433, 0.015);
}

TEST(RandomResizedCrop, TakesTheCentreOfAPictureThatNoPartFits) {
  EXPECT_EQ(random_resized_crop(1, 1000, 10), (PixelRectangle{493, 0, 13, 10}));
  EXPECT_EQ(random_resized_crop(1, 9, 1000), (PixelRectangle{0, 494, 9, 12}));
  EXPECT_EQ(random_resized_crop(1, 1, 1), (PixelRectangle{0, 0, 1, 1}));
}

// Numbers of this program, so that a change of the drawing is seen.
TEST(RandomResizedCrop, HasTheSameNumbersOnEveryMachine) {
  EXPECT_EQ(random_resized_crop(1, 4000, 3000), (PixelRectangle{406, 45, 2617, 2779}));
  EXPECT_EQ(random_resized_crop(2, 4000, 3000), (PixelRectangle{524, 3, 3062, 2792}));
}

// The part is drawn before the picture is decoded, and equals the part of the decoded picture.
TEST(RandomResizedCrop, ReadsAPartOfAPicture) {
  PictureFolder folder;
  folder.write_splits(4);
  const Picture picture = make_picture(60, 40);
  std::vector<std::uint8_t> large(picture.pixels.size());
  folder.write("train/cat/0.JPG", make_png(picture));
  constexpr std::int64_t kSide = 12;
  const ImageOptions image{.height = kSide, .width = kSide};
  const DataSplits splits = open_dataset(folder.data_flag(), {.image = image});
  std::vector<std::uint8_t> pixels(kSide * kSide * 3);
  std::vector<std::uint8_t> expected(pixels.size());
  for (int epoch = 0; epoch < 20; ++epoch) {
    const Draw draw = make_draw(Augment::kRandomResizedCrop, 7, epoch, 0);
    read_sample(*splits.train, 0, pixels, draw);
    const FileBytes file = make_png(picture);
    decode_image(file, "x", read_image_header(file, "x"),
                 {.width = kSide,
                  .height = kSide,
                  .crop = random_resized_crop(draw.bits, 60, 40),
                  .mirror = draw.flip},
                 expected);
    EXPECT_EQ(pixels, expected);
    // A data set in memory cuts the same part out of decoded pixels.
    std::vector<std::uint8_t> from_memory(picture.pixels.size());
    apply_draw(draw, {"x", DType::kU8, {40, 60, 3}}, std::as_bytes(std::span(picture.pixels)),
               std::as_writable_bytes(std::span(from_memory)));
    decode_image(file, "x", read_image_header(file, "x"),
                 {.width = 60,
                  .height = 40,
                  .crop = random_resized_crop(draw.bits, 60, 40),
                  .mirror = draw.flip},
                 large);
    EXPECT_EQ(from_memory, large);
  }
}

// A cache would repeat the part of the first epoch.
TEST(RandomResizedCrop, DiffersBetweenEpochsWithACache) {
  PictureFolder folder;
  folder.write_splits(2);
  const TemporaryFolder cache;
  const DataSplits splits = open_dataset(
      folder.data_flag(), {.image = {.height = 12, .width = 12, .cache_dir = cache.path()}});
  std::vector<std::uint8_t> first(12 * 12 * 3);
  std::vector<std::uint8_t> second(first.size());
  read_sample(*splits.train, 0, first, make_draw(Augment::kRandomResizedCrop, 7, 0, 0));
  read_sample(*splits.train, 0, second, make_draw(Augment::kRandomResizedCrop, 7, 1, 0));
  EXPECT_NE(first, second);
}

TEST(RandomResizedCrop, NeedsImagesOfBytes) {
  EXPECT_EQ(message_of<UsageError>([] {
              check_augment(Augment::kRandomResizedCrop, {"x", DType::kF32, {4, 4, 3}});
            }),
            "random-resized-crop needs images [H, W, C] of u8 with 1 or 3 channels; this data "
            "set's samples are f32 [4, 4, 3]");
  check_augment(Augment::kRandomResizedCrop, {"x", DType::kU8, {4, 4, 1}});
}

}  // namespace
}  // namespace syncopate
