// Compares single operations with numbers computed by hand.
#include "tests/reference/operations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace syncopate::reference {
namespace {

Map map_of(std::int64_t h, std::int64_t w, std::int64_t c, Values values) {
  return {.n = 1, .h = h, .w = w, .c = c, .values = std::move(values)};
}

TEST(ReferenceInput, SubtractsTheMeanAndDividesByTheDeviationOfItsChannel) {
  const Map y =
      input(map_of(1, 1, 2, {255.0, 51.0}), {.mean = {0.5F, 0.25F}, .stddev = {0.25F, 0.5F}});
  EXPECT_DOUBLE_EQ(y.values[0], 2.0);
  EXPECT_DOUBLE_EQ(y.values[1], (0.2 - 0.25) / 0.5);
}

TEST(ReferenceConvolution, DoesNotFlipTheKernel) {
  const Map x = map_of(2, 2, 1, {1.0, 2.0, 3.0, 4.0});
  const Map y =
      conv2d(x, {.kernel_h = 2, .kernel_w = 2}, {1.0, 10.0, 100.0, 1000.0}, {0.5}, {1, 1, 1});
  EXPECT_EQ(y.values, Values{4321.5});
}

TEST(ReferenceLayerNorm, NormalisesTheChannelsOfEachPixel) {
  const Map y =
      layer_norm(map_of(2, 1, 2, {1.0, 3.0, -5.0, 5.0}), {.epsilon = 0.0F}, {2.0, 1.0}, {0.0, 1.0});
  EXPECT_EQ(y.values, (Values{-2.0, 2.0, -2.0, 2.0}));
}

TEST(ReferenceConvolution, ReadsZeroOutsideTheMap) {
  const Map y =
      conv2d(map_of(1, 1, 1, {2.0}), {.pad = 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {}, {1, 1, 1});
  EXPECT_EQ(y.values, Values{10.0});
}

// The values were computed with TensorFlow ("same" with stride 2) and with PyTorch (padding 1).
TEST(ReferenceConvolution, PadsEachSideByItsOwnNumber) {
  Values map(16);
  std::iota(map.begin(), map.end(), 0.0);
  const Values weight = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const Map x = map_of(4, 4, 1, map);
  EXPECT_EQ(conv2d(x, {.stride = 2, .pad = {0, 0, 1, 1}}, weight, {}, {2, 2, 1}).values,
            (Values{258, 186, 187, 113}));
  EXPECT_EQ(conv2d(x, {.stride = 2, .pad = 1}, weight, {}, {2, 2, 1}).values,
            (Values{73, 154, 279, 438}));
}

TEST(ReferenceConvolution, KeepsChannelsInnermostInItsWeights) {
  // The convolution's weight has K = 2, R = S = 1 and C = 2.
  const Map y = conv2d(map_of(1, 1, 2, {1.0, 10.0}), {.kernel_h = 1, .kernel_w = 1},
                       {1.0, 2.0, 3.0, 4.0}, {}, {1, 1, 2});
  EXPECT_EQ(y.values, (Values{21.0, 43.0}));
}

TEST(ReferenceMaxPool, GivesATieToTheFirstInRowOrder) {
  const Map dx =
      max_pool_backward(map_of(2, 2, 1, {1.0, 5.0, 5.0, 5.0}), {}, map_of(1, 1, 1, {7.0}));
  EXPECT_EQ(dx.values, (Values{0.0, 7.0, 0.0, 0.0}));
}

TEST(ReferenceMaxPool, DropsAWindowThatDoesNotFit) {
  const Map y = max_pool(map_of(2, 3, 1, {1.0, 2.0, 9.0, 3.0, 4.0, 9.0}), {}, {1, 1, 1});
  EXPECT_EQ(y.values, Values{4.0});
}

// All values of the map are negative, so a zero in the padding would be the maximum.
TEST(ReferenceMaxPool, IgnoresPadding) {
  const MaxPoolOp operation{.window = 3, .stride = 2, .pad = 1};
  const Map x = map_of(2, 3, 1, {-6.0, -5.0, -4.0, -3.0, -3.0, -7.0});
  EXPECT_EQ(max_pool(x, operation, {1, 2, 1}).values, (Values{-3.0, -3.0}));
  // Both windows contain the -3 in the middle column; in the first window the -3 before it wins.
  EXPECT_EQ(max_pool_backward(x, operation, map_of(1, 2, 1, {10.0, 1.0})).values,
            (Values{0.0, 0.0, 0.0, 10.0, 1.0, 0.0}));
}

TEST(ReferenceShortcut, TakesEverySecondPixelAndAppendsZeroChannels) {
  const Map y = shortcut(map_of(2, 3, 1, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}), {.stride = 2}, {1, 2, 2});
  EXPECT_EQ(y.values, (Values{1.0, 0.0, 3.0, 0.0}));
}

// torch.nn.functional.cross_entropy(tensor([[1., 2., 4.]]), tensor([2]), label_smoothing=0.1)
TEST(ReferenceLoss, WithSmoothedLabelsIsThatOfPyTorch) {
  Map logits = make_map(1, {3});
  logits.values = {1.0, 2.0, 4.0};
  EXPECT_NEAR(softmax_cross_entropy(logits, {2}, 1.0, 0.1).loss, 0.3365127, 1e-6);
}

// torch.nn.functional.binary_cross_entropy_with_logits(tensor([[1., -2.]]), tensor([[0.25, 1.]]))
TEST(ReferenceLoss, OfLogitsAndSharesIsThatOfPyTorch) {
  Map x = make_map(1, {2});
  x.values = {1.0, -2.0};
  const Loss loss = binary_cross_entropy(x, {0.25, 1.0}, 1.0);
  EXPECT_NEAR(loss.loss, 1.5950949, 1e-6);
  EXPECT_EQ(loss.metric, 0.0);
}

TEST(ReferenceLoss, OfNumbersIsTheMeanSquaredError) {
  Map x = make_map(1, {2});
  x.values = {1.0, -2.0};
  const Loss loss = mean_squared_error(x, {4.0, -1.0}, 2.0);
  EXPECT_EQ(loss.loss, 2.5);
  EXPECT_EQ(loss.metric, 2.0);
  EXPECT_EQ(loss.dlogits.values, (Values{-1.5, -0.5}));
}

TEST(ReferenceLoss, IsTheLogarithmOfTheNumberOfClassesForEqualLogits) {
  const Map logits{.n = 2, .h = 1, .w = 1, .c = 4, .values = Values(8, 1000.0)};
  EXPECT_DOUBLE_EQ(softmax_cross_entropy(logits, {0, 3}, 2.0).loss, std::log(4.0));
}

// The values were computed with torch.nn.functional.interpolate.
TEST(ReferenceUpsample, ReadsBetweenPixelsAsPyTorch) {
  const UpsampleOp bilinear{.scale = 2, .mode = Interpolation::kBilinear};
  const Map y = upsample2d(map_of(2, 2, 1, {1, 2, 5, 9}), bilinear, {4, 4, 1});
  EXPECT_EQ(y.values, (Values{1, 1.25, 1.75, 2, 2, 2.4375, 3.3125, 3.75, 4, 4.8125, 6.4375, 7.25, 5,
                              6, 8, 9}));
  const Map nearest = upsample2d(map_of(1, 2, 1, {1, 2}), {.scale = 2}, {2, 4, 1});
  EXPECT_EQ(nearest.values, (Values{1, 1, 2, 2, 1, 1, 2, 2}));
}

TEST(ReferenceSoftmax, DividesThePowersOfEachPixelByTheirSum) {
  const Map y = softmax(map_of(2, 1, 2, {0.0, std::log(3.0), 1000.0, 1000.0}));
  const Values expected = {0.25, 0.75, 0.5, 0.5};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y.values[i], expected[i], 1e-12);
}

TEST(ReferenceTranspose, TakesEachSideFromTheAxisThatTheOrderNames) {
  const Map y = transpose(map_of(1, 2, 3, {0, 1, 2, 3, 4, 5}), {2, 0, 1});  // [3, 1, 2]
  EXPECT_EQ(y.values, (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(y.h, 3);
  EXPECT_EQ(y.c, 2);
}

TEST(ReferenceMean, IsOverTheSidesThatBecomeOne) {
  const Map x = map_of(2, 1, 2, {1, 2, 3, 6});
  EXPECT_EQ(reduce_mean(x, {1, 1, 2}).values, (Values{2, 4}));
  EXPECT_EQ(reduce_mean(x, {2, 1, 1}).values, (Values{1.5, 4.5}));
}

TEST(ReferenceMatmul, MultipliesTheMatricesOfEachRow) {
  const Map y = matmul(map_of(2, 1, 2, {1, 2, 3, 4}), map_of(2, 2, 1, {5, 6, 7, 8}));
  EXPECT_EQ(y.values, (Values{17, 53}));
}

TEST(ReferenceProduct, TakesOneFactorForEachChannel) {
  const Map x = map_of(2, 1, 2, {1, 2, 3, 4});
  EXPECT_EQ(multiply(x, map_of(1, 1, 2, {10, 100})).values, (Values{10, 200, 30, 400}));
  EXPECT_EQ(channel_products(x, x).values, (Values{10, 20}));
}

TEST(ReferenceActivation, ClipsAndScalesByItsNumbers) {
  const Map x = map_of(1, 1, 3, {-2.0, 0.5, 4.0});
  const ActivationOp clip{.kind = Activation::kClip, .low = -1.0F, .high = 4.0F};
  EXPECT_EQ(activate(x, clip).values, (Values{-1.0, 0.5, 4.0}));
  EXPECT_EQ(activate_backward(x, clip, x).values, (Values{0.0, 0.5, 4.0}));  // 4 is inside
  const ActivationOp linear{.kind = Activation::kLinear, .factor = 2.0F, .offset = 1.0F};
  EXPECT_EQ(activate(x, linear).values, (Values{-3.0, 2.0, 9.0}));
  EXPECT_EQ(activate(x, {.kind = Activation::kHardSigmoid}).values[1], 3.5 / 6.0);
  const ActivationOp leaky{.kind = Activation::kLeakyRelu, .slope = 0.25F};
  EXPECT_EQ(activate(x, leaky).values, (Values{-0.5, 0.5, 4.0}));
  EXPECT_EQ(activate_backward(x, leaky, x).values, (Values{-0.5, 0.5, 4.0}));
}

}  // namespace
}  // namespace syncopate::reference
