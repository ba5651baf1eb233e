#include "models/tensor/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "models/base/errors.h"

namespace syncopate {
namespace {

Tensor counting(Shape shape) {
  Tensor tensor = make_host_tensor(std::move(shape), DType::kF32);
  std::iota(tensor.f32().begin(), tensor.f32().end(), 0.0F);
  return tensor;
}

TEST(NumElements, IsOneForAScalarAndZeroForAnEmptyDimension) {
  EXPECT_EQ(num_elements(Shape{}), 1);
  EXPECT_EQ(num_elements({3, 0, 2}), 0);
  EXPECT_EQ(to_string(Shape{64, 28, 28, 1}), "[64, 28, 28, 1]");
}

TEST(Tensor, SharesItsMemoryWithACopy) {
  const Tensor tensor = counting({2, 3});
  const Tensor copy = tensor;  // NOLINT(performance-unnecessary-copy-initialization): the subject
  copy.f32()[4] = 40.0F;
  EXPECT_EQ(tensor.f32()[4], 40.0F);
}

TEST(Tensor, ReturnsRowsAsAView) {
  const Tensor rows = counting({4, 3}).rows(1, 3);
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  EXPECT_EQ(rows.f32().front(), 3.0F);
  EXPECT_EQ(rows.f32().back(), 8.0F);
}

TEST(Tensor, ReturnsNoElementsForAnEmptyRangeOfRows) {
  EXPECT_EQ(counting({4, 3}).rows(2, 2).num_elements(), 0);
}

TEST(Tensor, RefusesRowsOutOfRange) {
  const Tensor tensor = counting({4, 3});
  EXPECT_THROW(tensor.rows(2, 5), ShapeError);
  EXPECT_THROW(tensor.rows(-1, 2), ShapeError);
  EXPECT_THROW(tensor.rows(3, 2), ShapeError);
  EXPECT_THROW(counting({}).rows(0, 1), ShapeError);
}

TEST(Tensor, ReshapesWithoutMovingElements) {
  const Tensor tensor = counting({4, 3});
  EXPECT_EQ(tensor.reshaped({2, 6}).f32()[7], 7.0F);
  EXPECT_THROW(tensor.reshaped({5, 3}), ShapeError);
}

TEST(Tensor, RefusesAViewOutsideOfItsMemory) {
  const auto memory = make_host_buffer(16);
  EXPECT_NO_THROW(Tensor(memory, 4, {3}, DType::kF32));
  EXPECT_THROW(Tensor(memory, 4, {4}, DType::kF32), ShapeError);
  EXPECT_THROW(Tensor(nullptr, 0, {1}, DType::kF32), ShapeError);
}

TEST(Tensor, RefusesToBeReadAsAnotherDtype) {
  const Tensor labels = make_host_tensor({4}, DType::kI32);
  EXPECT_EQ(labels.i32().size(), 4U);
  EXPECT_THROW(labels.f32(), ShapeError);
  EXPECT_THROW(labels.u8(), ShapeError);
}

}  // namespace
}  // namespace syncopate
