// Compares the networks of --model with the sizes in their papers and the names in PyTorch.
#include "models/zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

NetworkInput grey() { return {{28, 28, 1}, 10, {}}; }
NetworkInput colour() { return {{32, 32, 3}, 10, {}}; }
NetworkInput imagenet() { return {{224, 224, 3}, 1000, {}}; }

const Parameter& parameter(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.parameters, name, &Parameter::name);
  if (found == graph.parameters.end()) throw InternalError("no parameter " + std::string(name));
  return *found;
}

// Returns the output shape of every residual sum of the graph.
std::vector<Shape> maps_after_blocks(const Graph& graph) {
  std::vector<Shape> maps;
  for (const Node& node : graph.nodes) {
    if (std::holds_alternative<AddOp>(node.operation)) maps.push_back(node.shape);
  }
  return maps;
}

std::vector<float> dropout_rates(const Graph& graph) {
  std::vector<float> rates;
  for (const Node& node : graph.nodes) {
    const auto* dropout = std::get_if<DropoutOp>(&node.operation);
    if (dropout != nullptr) rates.push_back(dropout->rate);
  }
  return rates;
}

TEST(MnistCnn, HasTheParametersOfTheTensorFlowGuide) {
  const Graph graph = mnist_cnn(grey());
  // The layer conv1 has 3*3*32 + 32 elements, fc1 13*13*32*64 + 64, fc2 64*10 + 10.
  EXPECT_EQ(graph.num_parameters(), 320 + 346176 + 650);
  EXPECT_EQ(parameter(graph, "conv1.weight").file_shape, (Shape{32, 1, 3, 3}));
  EXPECT_EQ(parameter(graph, "fc1.weight").file_shape, (Shape{64, 5408}));
  EXPECT_EQ(parameter(graph, "fc2.bias").file_shape, (Shape{10}));
}

TEST(Mlp, HasOneHiddenLayerOf128) {
  EXPECT_EQ(mlp(grey()).num_parameters(), 784 * 128 + 128 + 128 * 10 + 10);
}

TEST(MobilenetV2, HasTheParametersOfTorchvision) {
  const Graph graph = mobilenet_v2(imagenet());
  EXPECT_EQ(graph.num_parameters(), 3504872);
  EXPECT_EQ(parameter(graph, "features.1.conv.0.0.weight").file_shape, (Shape{32, 1, 3, 3}));
  EXPECT_EQ(parameter(graph, "features.17.conv.2.weight").file_shape, (Shape{320, 960, 1, 1}));
  EXPECT_EQ(parameter(graph, "classifier.1.weight").file_shape, (Shape{1000, 1280}));
  EXPECT_EQ(dropout_rates(graph), (std::vector<float>{0.2F}));
}

TEST(Vgg16, HasTheParametersOfTorchvision) {
  const Graph graph = vgg16(imagenet());
  EXPECT_EQ(graph.num_parameters(), 138357544);
  EXPECT_EQ(parameter(graph, "features.28.weight").file_shape, (Shape{512, 512, 3, 3}));
  EXPECT_EQ(parameter(graph, "classifier.0.weight").file_shape, (Shape{4096, 25088}));
  EXPECT_EQ(dropout_rates(graph), (std::vector<float>{0.5F, 0.5F}));
}

TEST(Fcn, HasTheParametersOfTheGuideOfOtbtf) {
  const Graph graph =
      fcn({.sample_shape = {64, 64, 4}, .classes = 2, .input = {}, .target_shape = {64, 64}});
  EXPECT_EQ(graph.num_parameters(), 120962);
  EXPECT_EQ(parameter(graph, "tconv1.weight").file_shape, (Shape{64, 64, 3, 3}));
  EXPECT_EQ(parameter(graph, "tconv4.weight").file_shape, (Shape{16, 2, 3, 3}));
  EXPECT_EQ(graph.target_shape(), (Shape{64, 64}));
}

// A network of U-Net's sizes for 3 channels and 2 classes that is common in PyTorch.
TEST(Unet, HasTheParametersOfPyTorchsNetwork) {
  const Graph graph =
      unet({.sample_shape = {32, 48, 3}, .classes = 2, .input = {}, .target_shape = {32, 48}});
  EXPECT_EQ(graph.num_parameters(), 31037698);
  EXPECT_EQ(parameter(graph, "up1.conv.double_conv.0.weight").file_shape, (Shape{512, 1024, 3, 3}));
}

TEST(NetworksOfLabelMaps, RefuseOtherSamples) {
  const NetworkInput odd{
      .sample_shape = {64, 40, 3}, .classes = 2, .input = {}, .target_shape = {64, 40}};
  EXPECT_THROW(fcn(odd), ShapeError);
  EXPECT_THROW(unet(odd), ShapeError);
  EXPECT_THROW(fcn(colour()), ShapeError) << "one class for a sample";
}

TEST(Resnet20, HasTheParametersOfItsPaper) {
  // Table 6 of He et al. 2016 has 0.27 M for resnet20. The convolutions have 432 + 6*2304 + 4608 +
  // 5*9216 + 18432 + 5*36864 elements, the batch norms 2*(7*16 + 6*32 + 6*64), the dense layer 650.
  EXPECT_EQ(resnet20(colour()).num_parameters(), 269722);
}

TEST(Resnet56, HasTheParametersOfItsPaper) {
  EXPECT_EQ(resnet56(colour()).num_parameters(), 853018);  // table 6 of the paper has 0.85 M
}

TEST(Resnet56, HasFiftySixLayersWithWeights) {
  const Graph graph = resnet56(colour());
  EXPECT_EQ(std::ranges::count_if(graph.parameters, &Parameter::decays), 56);
}

TEST(Resnet20, HalvesItsMapTwiceAndEndsWith64Channels) {
  const std::vector<Shape> maps = maps_after_blocks(resnet20(colour()));
  const Shape first{32, 32, 16};
  const Shape second{16, 16, 32};
  const Shape third{8, 8, 64};
  EXPECT_EQ(maps,
            (std::vector<Shape>{first, first, first, second, second, second, third, third, third}));
}

TEST(Resnet20, NamesItsParametersAsPyTorchDoes) {
  const Graph graph = resnet20(colour());
  EXPECT_EQ(parameter(graph, "layer2.0.conv1.weight").file_shape, (Shape{32, 16, 3, 3}));
  EXPECT_EQ(parameter(graph, "layer3.2.bn2.bias").file_shape, (Shape{64}));
  EXPECT_EQ(parameter(graph, "fc.weight").file_shape, (Shape{10, 64}));
  EXPECT_EQ(graph.state.front().name, "bn1.running_mean");
}

TEST(Resnet20, NamesItsRunningStatisticsAsPyTorchDoes) {
  const Graph graph = resnet20(colour());
  ASSERT_EQ(graph.state.size(), 19U * 2U);  // one batch norm per 3x3 convolution
  EXPECT_EQ(graph.state[0].name, "bn1.running_mean");
  EXPECT_EQ(graph.state[1].name, "bn1.running_var");
}

TEST(Resnet50, HasTheParametersOfTorchvision) {
  const Graph graph = resnet50(imagenet());
  EXPECT_EQ(graph.num_parameters(), 25'557'032);
  EXPECT_EQ(graph.parameters.size(), 161U);
  // ResNet-50 has weights in 50 layers and in 4 projections.
  EXPECT_EQ(std::ranges::count_if(graph.parameters, &Parameter::decays), 54);
  EXPECT_EQ(graph.state.size(), 53U * 2U);
}

TEST(Resnet50, HasTheMapsOfItsPaper) {
  const std::vector<Shape> maps = maps_after_blocks(resnet50(imagenet()));
  std::vector<Shape> expected(3, Shape{56, 56, 256});
  expected.insert(expected.end(), 4, Shape{28, 28, 512});
  expected.insert(expected.end(), 6, Shape{14, 14, 1024});
  expected.insert(expected.end(), 3, Shape{7, 7, 2048});
  EXPECT_EQ(maps, expected);
}

TEST(Resnet50, NamesAndOrdersItsParametersAsTorchvisionDoes) {
  const Graph graph = resnet50(imagenet());
  std::vector<std::string> names;
  for (const Parameter& p : graph.parameters) names.push_back(p.name);
  names.resize(18);
  EXPECT_EQ(
      names,
      as_words(
          "conv1.weight bn1.weight bn1.bias layer1.0.conv1.weight layer1.0.bn1.weight "
          "layer1.0.bn1.bias layer1.0.conv2.weight layer1.0.bn2.weight layer1.0.bn2.bias "
          "layer1.0.conv3.weight layer1.0.bn3.weight layer1.0.bn3.bias "
          "layer1.0.downsample.0.weight layer1.0.downsample.1.weight layer1.0.downsample.1.bias "
          "layer1.1.conv1.weight layer1.1.bn1.weight layer1.1.bn1.bias"));
  EXPECT_EQ(parameter(graph, "conv1.weight").file_shape, (Shape{64, 3, 7, 7}));
  EXPECT_EQ(parameter(graph, "layer4.0.conv1.weight").file_shape, (Shape{512, 1024, 1, 1}));
  EXPECT_EQ(parameter(graph, "layer4.0.downsample.0.weight").file_shape, (Shape{2048, 1024, 1, 1}));
  EXPECT_EQ(parameter(graph, "fc.weight").file_shape, (Shape{1000, 2048}));
  EXPECT_EQ(graph.parameters.back().name, "fc.bias");
}

TEST(Resnet50, HasTheStrideOfABottleneckInItsMiddleConvolution) {
  for (const Node& node : resnet50(imagenet()).nodes) {
    const auto* conv = std::get_if<Conv2dOp>(&node.operation);
    if (conv == nullptr || !node.name.starts_with("layer") || conv->stride == 1) continue;
    EXPECT_TRUE(node.name.ends_with(".0.conv2") || node.name.ends_with(".0.downsample.0"))
        << node.name;
  }
}

TEST(Resnet50, RequiresSamplesOfAtLeast32x32) {
  EXPECT_EQ(maps_after_blocks(resnet50(colour())).back(), (Shape{1, 1, 2048}));
  EXPECT_THROW(resnet50({{32, 31, 3}, 10, {}}), ShapeError);
}

// Keras counts running statistics, 53,120 in all: 25,636,712 for the whole network, 25,674,581 for
// the head of the guide.
TEST(Resnet50V1, HasTheParametersOfKeras) {
  EXPECT_EQ(resnet50_v1(imagenet()).num_parameters(), 25'636'712 - 53'120);
  NetworkInput with_head = imagenet();
  with_head.classes = 5;
  with_head.head = {1016};
  EXPECT_EQ(resnet50_v1(with_head).num_parameters(), 25'674'581 - 53'120);
}

TEST(Resnet50V1, HasTheStrideOfABottleneckInItsFirstConvolution) {
  for (const Node& node : resnet50_v1(imagenet()).nodes) {
    const auto* conv = std::get_if<Conv2dOp>(&node.operation);
    if (conv == nullptr) continue;
    EXPECT_TRUE(conv->bias) << node.name;
    if (!node.name.starts_with("layer") || conv->stride == 1) continue;
    EXPECT_TRUE(node.name.ends_with(".0.conv1") || node.name.ends_with(".0.downsample.0"))
        << node.name;
  }
}

TEST(Heads, AreNamedAsASequenceOfPyTorch) {
  NetworkInput input = colour();
  input.head = {16, 8};
  const Graph graph = resnet20(input);
  EXPECT_EQ(parameter(graph, "fc.0.weight").file_shape, (Shape{16, 64}));
  EXPECT_EQ(parameter(graph, "fc.2.weight").file_shape, (Shape{8, 16}));
  EXPECT_EQ(parameter(graph, "fc.4.weight").file_shape, (Shape{10, 8}));
}

TEST(Heads, AreTakenByEveryNetwork) {
  NetworkInput input = colour();
  input.head = {16};
  for (const NetworkRow& row : networks()) {
    if (row.labels_pixels) continue;
    const Graph graph = row.build(input);
    EXPECT_EQ(graph.parameters.back().file_shape, Shape{10}) << row.name;
    EXPECT_EQ((graph.parameters.end() - 2)->file_shape, (Shape{10, 16})) << row.name;
  }
}

TEST(Networks, ApplyWeightDecayToConvolutionAndDenseWeightsOnly) {
  for (const NetworkRow& row : networks()) {
    NetworkInput input = colour();
    if (row.labels_pixels) input.target_shape = {32, 32};
    const Graph graph = row.build(input);
    for (const Parameter& p : graph.parameters) EXPECT_EQ(p.decays, p.shape.size() > 1) << p.name;
  }
}

TEST(Networks, AreListedInTheErrorForAnUnknownName) {
  const std::string message =
      message_of<UsageError>([&] { (void)build_network("resnet21", colour()); });
  EXPECT_TRUE(contains(message, "resnet21"));
  for (const NetworkRow& row : networks()) EXPECT_TRUE(contains(message, row.name));
}

TEST(Networks, RefuseSamplesThatAreTooSmall) {
  EXPECT_THROW(build_network("mnist-cnn", {{2, 2, 1}, 10, {}}), ShapeError);
}

}  // namespace
}  // namespace syncopate
