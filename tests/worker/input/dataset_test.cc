#include "worker/input/dataset.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/packed_files.h"
#include "tests/worker/input/read_sample.h"

namespace syncopate {
namespace {

std::string error_of(const std::string& specification) {
  return message_of<UsageError>([&] { open_dataset(specification, {}); });
}

TEST(OpenDataset, ListsTheRightNamesForAWrongOne) {
  EXPECT_EQ(error_of("minst:/data"),
            "--data minst: no such data set; choose one of digits, shapes, mnist:DIR, cifar10:DIR, "
            "cifar100:DIR, "
            "images:DIR, tfds:DIR, tfrecord:GLOB[::[VAL_GLOB::]TEST_GLOB], otbtf:DIR, npy:DIR, "
            "csv:FILE[:LABEL_COLUMN|:targets=COLUMN,...], "
            "synthetic:CxHxW:CLASSES[:SAMPLES]");
}

TEST(OpenDataset, ShowsTheFormWhenTheArgumentIsMissingOrTooMuch) {
  const std::string advice =
      "DIR is missing; give --data mnist:DIR (folder of the four IDX files from "
      "https://ossci-datasets.s3.amazonaws.com/mnist/)";
  EXPECT_EQ(error_of("mnist"), "--data mnist: " + advice);
  EXPECT_EQ(error_of("mnist:"), "--data mnist:: " + advice);
  EXPECT_TRUE(error_of("digits:big").starts_with("--data digits:big: expected --data digits ("));
  EXPECT_FALSE(error_of("").empty());
}

TEST(SyntheticData, HasTheRequestedShape) {
  const DataSplits splits = open_dataset("synthetic:3x8x6:7", {});
  EXPECT_EQ(sample_shape(*splits.train), (Shape{8, 6, 3}));
  EXPECT_EQ(splits.train->spec().num_classes, 7);
  EXPECT_EQ(splits.train->size(), 50000);
  EXPECT_EQ(splits.test->size(), 10000);
  EXPECT_EQ(splits.mean.size(), 3U);
}

TEST(SyntheticData, RefusesInvalidShapes) {
  for (const char* wrong :
       {"3x32x32", "3x32:10", "3x32x32:0", "0x32x32:10", "3x32x32:10x", "x:", "-3x32x32:10",
        "3x5000x5000:10", "4096x4096x4096:10", "99999999999999999999x1x1:2"}) {
    EXPECT_TRUE(contains(error_of(std::string("synthetic:") + wrong), "expected CxHxW:CLASSES"))
        << wrong;
  }
}

TEST(SyntheticData, IsAFunctionOfSeedAndIndex) {
  const auto sample = [](std::uint64_t seed, std::int64_t index) {
    const DataSplits splits = open_dataset("synthetic:1x8x8:10", {.seed = seed});
    Bytes pixels(64);
    read_sample(*splits.train, index, pixels);
    return pixels;
  };
  EXPECT_EQ(sample(1, 5), sample(1, 5));
  EXPECT_NE(sample(1, 5), sample(1, 6));
  EXPECT_NE(sample(1, 5), sample(2, 5));
}

TEST(SyntheticData, GivesTheLabelThatReadingASampleGives) {
  const DataSplits splits = open_dataset("synthetic:1x8x8:10", {});
  Bytes pixels(64);
  for (std::int64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(splits.train->label(i), read_sample(*splits.train, i, pixels));
    EXPECT_EQ(splits.train->fingerprint(i),
              hash_name({reinterpret_cast<const char*>(pixels.data()), pixels.size()}));
  }
}

TEST(SyntheticData, IsAugmentedAsDrawn) {
  const DataSplits splits = open_dataset("synthetic:3x8x6:7", {});
  const TensorSpec& image = splits.train->spec().inputs[0];
  Bytes pixels(image.size_bytes());
  read_sample(*splits.train, 3, pixels);
  for (const Draw& draw :
       {Draw{Augment::kCropFlip, 2, -3, true}, Draw{Augment::kCropFlip, -4, 1, false}}) {
    Bytes expected(pixels.size());
    apply_draw(draw, image, std::as_bytes(std::span(pixels)),
               std::as_writable_bytes(std::span(expected)));
    Bytes augmented(pixels.size());
    read_sample(*splits.train, 3, augmented, draw);
    EXPECT_EQ(augmented, expected);
  }
}

TEST(DatasetInMemory, IsAugmentedAsDrawnAndHashesItsStoredPixels) {
  const auto dataset = make_memory_dataset(make_sample_block({1, 2, 3, 4}, {0, 1}), {1, 2, 1}, 2);
  Bytes pixels(2);
  EXPECT_EQ(read_sample(*dataset, 1, pixels, {Augment::kCropFlip, 0, 1, false}), 1);
  EXPECT_EQ(pixels, (Bytes{4, 0}));
  EXPECT_EQ(dataset->label(1), 1);
  EXPECT_EQ(dataset->fingerprint(1), hash_name("\3\4"));
}

// A network can learn the synthetic data: the nearest class mean of the training images gives the
// class of most test images.
TEST(SyntheticData, CanBeLearned) {
  const DataSplits splits = open_dataset("synthetic:3x8x8:10", {});
  constexpr std::size_t kPixels = 192;
  std::vector<std::vector<double>> mean(10, std::vector<double>(kPixels));
  std::vector<int> count(10);
  Bytes pixels(kPixels);
  for (std::int64_t i = 0; i < 2000; ++i) {
    const auto label = static_cast<std::size_t>(read_sample(*splits.train, i, pixels));
    ++count.at(label);
    for (std::size_t p = 0; p < kPixels; ++p) mean[label][p] += pixels[p];
  }
  int correct = 0;
  for (std::int64_t i = 0; i < 500; ++i) {
    const auto label = static_cast<std::size_t>(read_sample(*splits.test, i, pixels));
    std::size_t nearest = 0;
    double least = 1e300;
    for (std::size_t k = 0; k < 10; ++k) {
      double distance = 0;
      for (std::size_t p = 0; p < kPixels; ++p) {
        const double d = mean[k][p] / count[k] - pixels[p];
        distance += d * d;
      }
      if (distance < least) {
        least = distance;
        nearest = k;
      }
    }
    correct += nearest == label ? 1 : 0;
  }
  EXPECT_GT(correct, 450);
}

}  // namespace
}  // namespace syncopate
