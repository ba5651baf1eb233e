#include "models/graph/graph.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"

namespace syncopate {
namespace {

Shape shape_of(const Graph& graph, std::string_view node) {
  for (const Node& n : graph.nodes) {
    if (n.name == node) return n.shape;
  }
  ADD_FAILURE() << "no node " << node;
  return {};
}

// The fixture provides one input node for the tests of shape rules.
class GraphBuilderTest : public testing::Test {
 protected:
  GraphBuilder build_{"test"};
  NodeId x_ = build_.input({7, 5, 4}, {});

  // Returns the output shape of the last node before the loss.
  Shape finished_shape(NodeId logits) {
    const Graph graph = build_.finish(logits);
    return graph.nodes.at(graph.nodes.size() - 2).shape;
  }
};

TEST_F(GraphBuilderTest, CountsConvolutionWindowsWithPaddingAndStride) {
  const NodeId y =
      build_.conv2d(x_, "conv", 6, {.kernel_h = 3, .kernel_w = 3, .stride = 2, .pad = 1});
  const Graph graph = build_.finish(build_.global_average_pool(y));
  EXPECT_EQ(shape_of(graph, "conv"), (Shape{4, 3, 6}));
  EXPECT_EQ(graph.parameters.at(0).shape, (Shape{6, 3, 3, 4}));
  EXPECT_EQ(graph.parameters.at(0).file_shape, (Shape{6, 4, 3, 3}));
  EXPECT_EQ(graph.num_classes(), 6);
}

TEST_F(GraphBuilderTest, DropsPoolingWindowsThatDoNotFit) {
  EXPECT_EQ(finished_shape(build_.max_pool(x_)), (Shape{3, 2, 4}));
}

TEST_F(GraphBuilderTest, CountsPoolingWindowsWithPaddingAndStride) {
  const NodeId y = build_.max_pool(x_, {.window = 3, .stride = 2, .pad = 1});
  EXPECT_EQ(finished_shape(y), (Shape{4, 3, 4}));
}

TEST_F(GraphBuilderTest, RefusesPoolingWindowsThatCouldContainPaddingOnly) {
  EXPECT_THROW(build_.max_pool(x_, {.window = 2, .stride = 2, .pad = 1}), ShapeError);
  EXPECT_THROW(build_.max_pool(x_, {.window = 3, .stride = 2, .pad = -1}), ShapeError);
}

TEST_F(GraphBuilderTest, RoundsUpTheMapOfAShortcut) {
  EXPECT_EQ(finished_shape(build_.shortcut(x_, 2, 8)), (Shape{4, 3, 8}));
}

TEST_F(GraphBuilderTest, RefusesAWindowLargerThanTheMap) {
  EXPECT_THROW(build_.conv2d(x_, "conv", 6, {.kernel_h = 8, .kernel_w = 3}), ShapeError);
  EXPECT_THROW(build_.max_pool(x_, {.window = 6, .stride = 6}), ShapeError);
}

TEST_F(GraphBuilderTest, RefusesToAddUnequalShapes) {
  EXPECT_THROW(build_.add(x_, build_.max_pool(x_)), ShapeError);
}

TEST_F(GraphBuilderTest, RefusesANodeOfAnotherNetwork) {
  EXPECT_THROW(build_.relu(99), ShapeError);
  EXPECT_THROW(build_.relu(-1), ShapeError);
}

TEST_F(GraphBuilderTest, RefusesADenseLayerOnAMap) {
  EXPECT_THROW(build_.dense(x_, "fc", 10), ShapeError);
}

// A vector that was a map has the order C, H, W in files, as in PyTorch.
TEST_F(GraphBuilderTest, GivesAFlattenedLayerNormAndTheDenseLayerBehindItTheOrderOfFiles) {
  const NodeId y = build_.layer_norm(build_.flatten(build_.layer_norm(x_, "map")), "vector");
  const NodeId z =
      build_.multiply(build_.relu(build_.flatten(y)), build_.activation(y, Activation::kTanh));
  const Graph graph = build_.finish(build_.dense(build_.dropout(z, "drop"), "fc", 10));
  using Axes = std::array<std::int64_t, 4>;
  const Axes expected[] = {{}, {}, {1, 4, 7, 5}, {1, 4, 7, 5}, {10, 4, 7, 5}, {}};
  ASSERT_EQ(graph.parameters.size(), std::size(expected));
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    EXPECT_EQ(graph.parameters[p].file_axes, expected[p]) << graph.parameters[p].name;
    EXPECT_EQ(graph.parameters[p].decays, graph.parameters[p].name == "fc.weight");
  }
  EXPECT_EQ(graph.parameters[0].shape, Shape{4});
  EXPECT_EQ(graph.parameters[2].shape, Shape{7 * 5 * 4});
}

TEST_F(GraphBuilderTest, RefusesToJoinAFlattenedMapWithFeaturesInTheOrderOfFiles) {
  const NodeId map = build_.relu(build_.flatten(x_));  // 7x5x4
  const NodeId features = build_.dense(map, "fc", 7 * 5 * 4);
  EXPECT_THROW(build_.add(map, features), ShapeError);
  EXPECT_THROW(build_.multiply(features, map), ShapeError);
  EXPECT_THROW(build_.concat({features, map}), ShapeError);
  EXPECT_NO_THROW(build_.concat({features, build_.global_average_pool(x_)}));
  EXPECT_NO_THROW(build_.add(map, build_.flatten(build_.relu(x_))));
}

TEST_F(GraphBuilderTest, RefusesADropoutOfAllElementsOrWithoutName) {
  EXPECT_THROW(build_.dropout(x_, "drop", {.rate = 1.0F}), ShapeError);
  EXPECT_THROW(build_.dropout(x_, "drop", {.rate = -0.1F}), ShapeError);
  EXPECT_THROW(build_.dropout(x_, ""), ShapeError);
}

TEST_F(GraphBuilderTest, UsesKeysWhereADropoutDropsElements) {
  const NodeId none = build_.dropout(build_.global_average_pool(x_), "none", {.rate = 0.0F});
  EXPECT_FALSE(GraphBuilder(build_).finish(none).uses_keys());
  EXPECT_TRUE(build_.finish(build_.dropout(none, "some", {.rate = 0.1F})).uses_keys());
}

TEST_F(GraphBuilderTest, RefusesAShortcutThatDropsChannels) {
  EXPECT_THROW(build_.shortcut(x_, 1, 3), ShapeError);
}

TEST_F(GraphBuilderTest, RefusesMoreClassesOfPixelsThanLabelsCanHave) {
  EXPECT_THROW(build_.finish(build_.conv2d(x_, "conv", 256, {})), ShapeError);
}

// The classes would have the order H, W, C here and C, H, W in PyTorch and in ONNX files.
TEST_F(GraphBuilderTest, RefusesAFlattenedMapAsClasses) {
  const NodeId vector = build_.relu(build_.flatten(x_));
  EXPECT_THROW((void)GraphBuilder(build_).finish(vector), ShapeError);
  EXPECT_THROW((void)GraphBuilder(build_).finish(vector, {.kind = LossKind::kMeanSquaredError}),
               ShapeError);
  const NodeId reshaped = build_.reshape(x_, {140});
  const NodeId classes = build_.dense(vector, "fc", 3);
  // Of one channel both orders are the same.
  const NodeId plane = build_.flatten(build_.conv2d(x_, "conv", 1, {}));
  for (const NodeId each : {reshaped, classes, plane}) {
    EXPECT_NO_THROW((void)GraphBuilder(build_).finish(each)) << each;
  }
}

TEST_F(GraphBuilderTest, RefusesALossOfNumbersOfAMapOrWithLabelSmoothing) {
  EXPECT_THROW((void)GraphBuilder(build_).finish(x_, {.kind = LossKind::kMeanSquaredError}),
               ShapeError);
  const NodeId y = build_.dense(build_.flatten(x_), "fc", 3);
  EXPECT_THROW((void)GraphBuilder(build_).finish(
                   y, {.kind = LossKind::kBinaryCrossEntropy, .label_smoothing = 0.1F}),
               ShapeError);
  EXPECT_EQ(build_.finish(y, {.kind = LossKind::kBinaryCrossEntropy}).target_shape(), Shape{3});
}

TEST_F(GraphBuilderTest, RefusesGroupsThatDoNotDivideTheChannels) {
  EXPECT_THROW(build_.conv2d(x_, "conv", 6, {.groups = 5}), ShapeError);
  EXPECT_THROW(build_.conv2d(x_, "conv", 6, {.groups = 0}), ShapeError);
}

TEST_F(GraphBuilderTest, RefusesATransposedConvolutionWithoutOutput) {
  EXPECT_THROW(build_.conv_transpose2d(x_, "up", 6, {.stride = 0}), ShapeError);
  EXPECT_THROW(build_.conv_transpose2d(x_, "up", 6, {.pad = 3}), ShapeError);
}

TEST(GraphInput, RequiresOneMeanAndDeviationPerChannel) {
  EXPECT_THROW(GraphBuilder("test").input({4, 4, 3}, {.mean = {0.5F}, .stddev = {1.0F}}),
               ShapeError);
}

}  // namespace
}  // namespace syncopate
