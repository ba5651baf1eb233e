#include "models/graph/graph.h"

#include <gtest/gtest.h>

#include <set>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

const NetworkInput kGreyImages = {.sample_shape = {28, 28, 1}};
const NetworkInput kColourImages = {.sample_shape = {32, 32, 3}};

std::vector<std::string> parameter_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  return names;
}

Shape shape_of(const Graph& graph, std::string_view node) {
  for (const Node& n : graph.nodes) {
    if (n.name == node) return n.shape;
  }
  ADD_FAILURE() << "no node " << node;
  return {};
}

TEST(MnistCnn, HasTheParametersOfTheTensorFlowGuide) {
  const Graph graph = build_network("mnist-cnn", kGreyImages);
  // The numbers of parameters are: conv1: 3 * 3 * 32 + 32. fc1 has 13 * 13 * 32 = 5408 inputs: 5408
  // * 64 + 64. fc2: 64 * 10 + 10.
  EXPECT_EQ(graph.num_parameters(), 347'146);
  EXPECT_EQ(parameter_names(graph),
            (std::vector<std::string>{"conv1.weight", "conv1.bias", "fc1.weight", "fc1.bias",
                                      "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(graph.num_classes(), 10);
  EXPECT_EQ(shape_of(graph, "conv1"), (Shape{26, 26, 32}));
  EXPECT_EQ(graph.parameters.at(2).shape, (Shape{64, 5408}));
}

TEST(Mlp, HasOneHiddenLayer) {
  EXPECT_EQ(build_network("mlp", kGreyImages).num_parameters(), 784 * 128 + 128 + 128 * 10 + 10);
}

// Source of the parameter counts, 0.27 M and 0.85 M: He et al. 2016, table 6.
TEST(ResNet, HasTheParametersOfThePaper) {
  EXPECT_EQ(build_network("resnet20", kColourImages).num_parameters(), 269'722);
  EXPECT_EQ(build_network("resnet56", kColourImages).num_parameters(), 853'018);
}

TEST(ResNet, NamesItsTensorsAsPyTorchDoes) {
  const Graph graph = build_network("resnet20", kColourImages);
  const std::vector<std::string> names = parameter_names(graph);
  EXPECT_EQ((std::vector<std::string>(names.begin(), names.begin() + 5)),
            (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias",
                                      "layer1.0.conv1.weight", "layer1.0.bn1.weight"}));
  EXPECT_EQ(names.back(), "fc.bias");
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(graph.state.at(0).name, "bn1.running_mean");
  EXPECT_EQ(graph.state.at(1).name, "bn1.running_var");
  EXPECT_EQ(graph.state.size(), 19U * 2U);  // one batch norm per 3x3 convolution
}

TEST(ResNet, HalvesTheMapInEachStageAfterTheFirst) {
  const Graph graph = build_network("resnet20", kColourImages);
  EXPECT_EQ(shape_of(graph, "layer1.2.bn2"), (Shape{32, 32, 16}));
  EXPECT_EQ(shape_of(graph, "layer2.0.conv1"), (Shape{16, 16, 32}));
  EXPECT_EQ(shape_of(graph, "layer3.2.bn2"), (Shape{8, 8, 64}));
}

TEST(Networks, ApplyWeightDecayToConvolutionAndDenseWeightsOnly) {
  for (const Parameter& parameter : build_network("resnet20", kColourImages).parameters) {
    EXPECT_EQ(parameter.decays, parameter.shape.size() > 1) << parameter.name;
  }
}

TEST(Networks, AreListedInTheErrorForAnUnknownName) {
  try {
    build_network("resnet21", kColourImages);
    FAIL() << "nothing was thrown";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("mnist-cnn, mlp, resnet20, resnet56"),
              std::string::npos)
        << error.what();
  }
}

TEST(Networks, RefuseSamplesThatAreTooSmall) {
  EXPECT_THROW(build_network("mnist-cnn", {.sample_shape = {2, 2, 1}}), ShapeError);
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
  EXPECT_EQ(finished_shape(build_.flatten(build_.max_pool(x_))), Shape{3 * 2 * 4});
}

TEST_F(GraphBuilderTest, CountsPoolingWindowsWithPaddingAndStride) {
  const NodeId y = build_.max_pool(x_, {.window = 3, .stride = 2, .pad = 1});
  EXPECT_EQ(finished_shape(build_.flatten(y)), Shape{4 * 3 * 4});
}

TEST_F(GraphBuilderTest, RefusesPoolingWindowsThatCouldContainPaddingOnly) {
  EXPECT_THROW(build_.max_pool(x_, {.window = 2, .stride = 2, .pad = 1}), ShapeError);
  EXPECT_THROW(build_.max_pool(x_, {.window = 3, .stride = 2, .pad = -1}), ShapeError);
}

TEST_F(GraphBuilderTest, RoundsUpTheMapOfAShortcut) {
  EXPECT_EQ(finished_shape(build_.flatten(build_.shortcut(x_, 2, 8))), Shape{4 * 3 * 8});
}

TEST_F(GraphBuilderTest, RefusesAWindowLargerThanTheMap) {
  EXPECT_THROW(build_.conv2d(x_, "conv", 6, {.kernel_h = 8, .kernel_w = 3}), ShapeError);
  EXPECT_THROW(build_.max_pool(x_, {.window = 6, .stride = 6}), ShapeError);
}

TEST_F(GraphBuilderTest, RefusesToAddUnequalShapes) {
  EXPECT_THROW(build_.add(x_, build_.max_pool(x_)), ShapeError);
}

TEST_F(GraphBuilderTest, RefusesADenseLayerOnAMap) {
  EXPECT_THROW(build_.dense(x_, "fc", 10), ShapeError);
}

TEST_F(GraphBuilderTest, RefusesAShortcutThatDropsChannels) {
  EXPECT_THROW(build_.shortcut(x_, 1, 3), ShapeError);
}

TEST_F(GraphBuilderTest, RefusesAMapAsLogits) { EXPECT_THROW(build_.finish(x_), ShapeError); }

TEST(GraphInput, RequiresOneMeanAndDeviationPerChannel) {
  EXPECT_THROW(GraphBuilder("test").input({4, 4, 3}, {.mean = {0.5F}, .stddev = {1.0F}}),
               ShapeError);
}

}  // namespace
}  // namespace syncopate
