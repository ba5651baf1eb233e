#include "worker/train/confusion.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace syncopate {
namespace {

// Returns one row of logits per prediction, with the predicted class ahead.
Tensor logits_for(const std::vector<std::size_t>& predicted, std::size_t classes) {
  const auto n = static_cast<std::int64_t>(predicted.size());
  Tensor logits = make_host_tensor({n, static_cast<std::int64_t>(classes)}, DType::kF32);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    logits.f32()[i * classes + predicted[i]] = 1.0F;
  }
  return logits;
}

Tensor targets_of(const std::vector<std::int32_t>& labels) {
  Tensor targets = make_host_tensor({static_cast<std::int64_t>(labels.size())}, DType::kI32);
  std::ranges::copy(labels, targets.i32().begin());
  return targets;
}

TEST(AConfusionMatrix, CountsTargetsAndPredictionsOverBatches) {
  ConfusionMatrix matrix(3);
  matrix.add(logits_for({0, 1, 1}, 3), targets_of({0, 0, 1}));
  matrix.add(logits_for({1}, 3), targets_of({0}));
  EXPECT_EQ(matrix.counts().at({0, 0}), 1);
  EXPECT_EQ(matrix.counts().at({0, 1}), 2);
  EXPECT_EQ(matrix.counts().at({1, 1}), 1);
  EXPECT_EQ(matrix.counts().size(), 3U);
}

TEST(AConfusionMatrix, GivesPrecisionAndRecallPerClass) {
  ConfusionMatrix matrix(3);
  matrix.add(logits_for({0, 1, 1, 1}, 3), targets_of({0, 0, 0, 1}));
  const std::vector<ClassCounts> classes = matrix.classes();
  EXPECT_EQ(classes[0].samples, 3);
  EXPECT_EQ(classes[0].precision(), 1.0);
  EXPECT_EQ(classes[0].recall(), 1.0 / 3.0);
  EXPECT_EQ(classes[1].predicted, 3);
  EXPECT_EQ(classes[1].precision(), 1.0 / 3.0);
  EXPECT_EQ(classes[1].recall(), 1.0);
  EXPECT_EQ(classes[2].precision(), std::nullopt) << "no sample is taken for class 2";
  EXPECT_EQ(classes[2].recall(), std::nullopt) << "no sample is of class 2";
}

TEST(AConfusionMatrix, CountsThePixelsOfLabelMapsThatCount) {
  ConfusionMatrix matrix(3);
  Tensor logits = make_host_tensor({1, 2, 3, 3}, DType::kF32);
  Tensor targets = make_host_tensor({1, 2, 3}, DType::kI32);
  const std::vector<std::int32_t> labels = {0, 0, 1, 1, 255, 0};
  const std::vector<std::size_t> predicted = {0, 1, 1, 1, 2, 0};
  for (std::size_t p = 0; p < labels.size(); ++p) {
    targets.i32()[p] = labels[p];
    logits.f32()[p * 3 + predicted[p]] = 1.0F;
  }
  matrix.add(logits, targets);
  const std::vector<ClassCounts> classes = matrix.classes();
  EXPECT_EQ(classes[0].samples, 3);
  EXPECT_EQ(classes[0].iou(), 2.0 / 3.0);
  EXPECT_EQ(classes[1].iou(), 2.0 / 3.0);
  EXPECT_EQ(classes[2].iou(), std::nullopt) << "the only pixel taken for class 2 does not count";
  EXPECT_EQ(mean_iou(classes), 2.0 / 3.0);
  EXPECT_EQ(mean_iou(ConfusionMatrix(3).classes()), std::nullopt);
}

TEST(AConfusionMatrix, TakesTheFirstOfEqualLogits) {
  ConfusionMatrix matrix(2);
  matrix.add(logits_for({0}, 2), targets_of({0}));
  matrix.add(make_host_tensor({1, 2}, DType::kF32), targets_of({1}));
  EXPECT_EQ(matrix.counts().at({1, 0}), 1);
}

}  // namespace
}  // namespace syncopate
