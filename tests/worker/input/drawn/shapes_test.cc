// Tests the data set `shapes` and the augmentation of label maps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/graph/graph.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "worker/input/dataset.h"
#include "worker/run/run_data.h"

namespace syncopate {
namespace {

constexpr int kSide = 64;
constexpr std::size_t kPixels = std::size_t{kSide} * kSide;

struct Picture {
  std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(kPixels * 3);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kPixels);
};

class Shapes : public testing::Test {
 protected:
  static void SetUpTestSuite() { data_ = new DataSplits(open_dataset("shapes", {})); }
  static void TearDownTestSuite() { delete data_; }

  static Picture read(const Dataset& split, std::int64_t index, const Draw& draw = {}) {
    Picture picture;
    const std::array inputs = {std::as_writable_bytes(std::span(picture.pixels))};
    split.read(index, draw, {inputs, std::as_writable_bytes(std::span(picture.labels))});
    return picture;
  }

  static DataSplits* data_;
};

DataSplits* Shapes::data_ = nullptr;

TEST_F(Shapes, HaveAClassForEachPixel) {
  const SampleSpec& spec = data_->train->spec();
  EXPECT_EQ(data_->train->size(), 6000);
  EXPECT_EQ(data_->test->size(), 1000);
  EXPECT_EQ(spec.inputs[0].shape, (Shape{kSide, kSide, 3}));
  EXPECT_EQ(spec.target.shape, (Shape{kSide, kSide}));
  EXPECT_EQ(spec.num_classes, 3);
  EXPECT_EQ(data_->class_names.size(), 3U);
}

// A checkpoint records its samples: others would make it refuse the data set.
TEST_F(Shapes, AreDrawnWithTheSameBitsOnEveryMachine) {
  EXPECT_EQ(data_->train->fingerprint(0), 6565861994336413836U);
  EXPECT_EQ(data_->test->fingerprint(999), 7646143437206516886U);
}

TEST_F(Shapes, ShowDiscsAndBarsWithAColourOfTheirOwn) {
  std::array<std::int64_t, 3> pixels{};
  for (std::int64_t i = 0; i < 200; ++i) {
    const Picture picture = read(*data_->train, i);
    std::array<double, 3> red{};
    std::array<std::int64_t, 3> count{};
    for (std::size_t p = 0; p < kPixels; ++p) {
      const auto label = static_cast<std::size_t>(picture.labels[p]);
      ASSERT_LT(label, 3U);
      red[label] += picture.pixels[3 * p];
      ++count[label];
      ++pixels[label];
    }
    if (i != 0) continue;
    ASSERT_GT(count[0], 0);
    for (const std::size_t object : {1U, 2U}) {
      if (count[object] == 0) continue;
      const double difference =
          red[object] / static_cast<double>(count[object]) - red[0] / static_cast<double>(count[0]);
      EXPECT_GT(std::abs(difference), 20.0);
    }
  }
  EXPECT_GT(pixels[0], pixels[1] + pixels[2]);
  EXPECT_GT(pixels[1], 200 * 100);
  EXPECT_GT(pixels[2], 200 * 100);
}

TEST_F(Shapes, AreCroppedAndMirroredTogetherWithTheirMaps) {
  const Picture whole = read(*data_->train, 3);
  const Draw draw{.kind = Augment::kCropFlip, .dy = 2, .dx = -3, .flip = true};
  const Picture moved = read(*data_->train, 3, draw);
  std::int64_t uncounted = 0;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int from_y = y + 2;
      const int from_x = kSide - 1 - x - 3;
      const auto at = static_cast<std::size_t>(y * kSide + x);
      if (from_y >= kSide || from_x < 0) {
        EXPECT_EQ(moved.labels[at], kUncounted);
        EXPECT_EQ(moved.pixels[3 * at], 0);
        ++uncounted;
        continue;
      }
      const auto from = static_cast<std::size_t>(from_y * kSide + from_x);
      ASSERT_EQ(moved.labels[at], whole.labels[from]) << y << " " << x;
      ASSERT_EQ(moved.pixels[3 * at], whole.pixels[3 * from]) << y << " " << x;
    }
  }
  EXPECT_EQ(uncounted, 2 * kSide + 3 * kSide - 2 * 3);
}

TEST_F(Shapes, RefuseACropThatWouldResizeTheirMaps) {
  EXPECT_THROW(require_images_for(Augment::kRandomResizedCrop, *data_, "shapes"), UsageError);
  EXPECT_NO_THROW(require_images_for(Augment::kCropFlip, *data_, "shapes"));
}

TEST_F(Shapes, SuitNetworksOfLabelMapsAlone) {
  const auto refusal = [](const std::string& model) -> std::string {
    return message_if_thrown<UsageError>([&] { (void)network_for_data(model, "shapes", *data_, {}); });
  };
  EXPECT_EQ(refusal("fcn"), "");
  EXPECT_EQ(refusal("unet"), "");
  EXPECT_TRUE(contains(refusal("resnet20"), "choose --model fcn or unet"));
  EXPECT_EQ(network_for_data("fcn", "shapes", *data_, {}).target_shape(), (Shape{kSide, kSide}));
}

}  // namespace
}  // namespace syncopate
