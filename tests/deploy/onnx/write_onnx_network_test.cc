// Networks that are written as ONNX files and read again.
#include "deploy/onnx/write_onnx_network.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "models/zoo/zoo.h"
#include "tests/deploy/onnx/onnx_model.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

Graph of_zoo(const std::string& network, const Shape& sample, int classes) {
  const auto channels = static_cast<std::size_t>(sample.back());
  return build_network(network, {.sample_shape = sample,
                                 .classes = classes,
                                 .input = {.dtype = DType::kF32,
                                           .mean = std::vector<float>(channels, 0.0F),
                                           .stddev = std::vector<float>(channels, 1.0F)}});
}

// A network with the operations that none of the zoo has.
Graph of_rare_operations() {
  GraphBuilder build("rare");
  const std::vector<float> zeros(4, 0.0F);
  const std::vector<float> ones(4, 1.0F);
  NodeId x = build.input({6, 8, 4}, {.dtype = DType::kF32, .mean = zeros, .stddev = ones});
  x = build.layer_norm(x, "norm", {.epsilon = 1e-6F});
  x = build.conv2d(x, "conv", 8, {.kernel_h = 3, .kernel_w = 1, .pad = {1, 0, 1, 0}, .groups = 2});
  for (const Activation each : {Activation::kGelu, Activation::kSilu, Activation::kHardSwish,
                                Activation::kRelu6, Activation::kTanh, Activation::kSigmoid}) {
    x = build.activation(x, each);
  }
  x = build.leaky_relu(x, 0.3F);
  x = build.multiply(x, build.activation(x, Activation::kTanh));
  x = build.average_pool(x, {.window = 3, .stride = 2, .pad = 1});
  x = build.conv_transpose2d(x, "up", 4, {.kernel_h = 3, .kernel_w = 3, .pad = {1, 1, 0, 0}});
  x = build.max_pool(x, {.window = 3, .stride = 1, .pad = 1});
  x = build.flatten(x);
  x = build.dense(x, "hidden", 5);
  x = build.layer_norm(x, "norm2");
  return build.finish(build.dense(x, "fc", 3));
}

class AnOnnxFileOf : public testing::Test {
 protected:
  // Values that differ between tensors and elements.
  static std::vector<float> values(const Graph& graph, std::size_t i) {
    const Shape& shape = i < graph.parameters.size()
                             ? graph.parameters[i].file_shape
                             : graph.state[i - graph.parameters.size()].shape;
    std::vector<float> list(static_cast<std::size_t>(num_elements(shape)));
    for (std::size_t k = 0; k < list.size(); ++k) {
      list[k] = static_cast<float>(i + 1) + static_cast<float>(k % 97) * 0.001F;
    }
    return list;
  }
  void write(const Graph& graph) const {
    write_onnx_network(
        graph, [&](std::size_t i) { return values(graph, i); },
        {{"input", "x / 255"}, {"loss", std::string(name(graph.loss().kind))}}, path());
  }
  std::filesystem::path path() const { return folder_.path() / "net.onnx"; }
  // Returns the file that was written.
  ModelProto stored() const {
    std::ifstream file(path(), std::ios::binary);
    ModelProto model;
    EXPECT_TRUE(model.ParseFromIstream(&file));
    return model;
  }
  void expect_same_when_read(Graph graph) const {
    write(graph);
    const OnnxNetwork read = read_onnx_network(path());
    graph.name = "net";  // a converted network has the name of its file
    EXPECT_EQ(first_difference(graph, read.graph), "");
    ASSERT_EQ(read.weights.size(), graph.parameters.size() + graph.state.size());
    for (std::size_t i = 0; i < read.weights.size(); ++i) {
      EXPECT_EQ(read.weights[i].values, values(graph, i)) << read.weights[i].name;
    }
  }

  TemporaryFolder folder_;
};

TEST_F(AnOnnxFileOf, ANetworkOfTheZooIsReadAsTheSameNetwork) {
  for (const char* const network : {"mnist-cnn", "mlp", "resnet50"}) {
    SCOPED_TRACE(network);
    expect_same_when_read(of_zoo(network, {32, 32, 3}, 7));
  }
}

// The parameters of one channel or one number have one element, as fixed numbers have.
TEST_F(AnOnnxFileOf, LayersOfOneChannelIsReadAsTheSameNetwork) {
  GraphBuilder build("narrow");
  NodeId x = build.input({6, 6, 1}, {.dtype = DType::kF32, .mean = {0.0F}, .stddev = {1.0F}});
  x = build.conv2d(x, "conv", 1, {.kernel_h = 3, .kernel_w = 3, .pad = 1});
  x = build.batch_norm(x, "bn", {});
  x = build.linear(x, 0.5F);
  x = build.layer_norm(x, "norm");
  x = build.conv_transpose2d(x, "up", 1, {.kernel_h = 1, .kernel_w = 1});
  x = build.dense(build.global_average_pool(x), "fc", 1);
  expect_same_when_read(build.finish(x, {.kind = LossKind::kMeanSquaredError}));
}

TEST_F(AnOnnxFileOf, RareOperationsIsReadAsTheSameNetwork) {
  expect_same_when_read(of_rare_operations());
}

TEST_F(AnOnnxFileOf, ANetworkWithDropoutHasItSwitchedOff) {
  write(of_zoo("mobilenet-v2", {32, 32, 3}, 7));
  EXPECT_EQ(read_onnx_network(path()).notes,
            std::vector<std::string>{
                "the dropout of 0.2 in node classifier.0 is switched off and was left out"});
}

// A network whose program has no axis of channels takes the samples of that program.
TEST_F(AnOnnxFileOf, RowsOfFeaturesHasTheInputOfTheirProgram) {
  OnnxModel rows({0, 6, 8});
  rows.weights("m.weight", {8, 8});
  rows.node("MatMul", "m", {"x", "m.weight"});
  rows.list("axes", {1});
  set(rows.node("ReduceMean", "mean", {"m", "axes"}), "keepdims", 0);
  rows.weights("fc.weight", {8, 5});
  rows.weights("fc.bias", {5});
  rows.last("Gemm", "fc", {"mean", "fc.weight", "fc.bias"});
  rows.save(path());
  const Graph graph = read_onnx_network(path()).graph;
  EXPECT_EQ(graph.input_shape(), (Shape{6, 8, 1}));
  expect_same_when_read(graph);
  const ModelProto model = stored();
  const auto& shape = model.graph().input(0).type().tensor_type().shape();
  ASSERT_EQ(shape.dim_size(), 3);
  EXPECT_EQ(shape.dim(1).dim_value(), 6);
  EXPECT_EQ(shape.dim(2).dim_value(), 8);
}

TEST_F(AnOnnxFileOf, AnyNetworkHasOneNameForEachValue) {
  write(of_zoo("resnet20", {16, 16, 3}, 4));  // has a shortcut, which `convert` does not read
  const ModelProto model = stored();
  std::set<std::string> names = {model.graph().input(0).name()};
  for (const auto& tensor : model.graph().initializer()) {
    EXPECT_TRUE(names.insert(tensor.name()).second) << tensor.name();
  }
  for (const auto& node : model.graph().node()) {
    for (const std::string& input : node.input()) EXPECT_TRUE(names.contains(input)) << input;
    for (const std::string& output : node.output()) {
      EXPECT_TRUE(names.insert(output).second) << output;
    }
  }
  EXPECT_TRUE(names.contains("logits"));
  EXPECT_EQ(model.graph().output(0).name(), "logits");
  EXPECT_EQ(model.metadata_props(0).key(), "input");
}

TEST_F(AnOnnxFileOf, ANetworkOfNumbersKeepsItsLoss) {
  GraphBuilder build("net");
  const NodeId x = build.input({3}, {.dtype = DType::kF32, .mean = {0.0F}, .stddev = {1.0F}});
  const Graph graph = build.finish(build.dense(x, "fc", 2), {.kind = LossKind::kMeanSquaredError});
  write_onnx_network(
      graph, [&](std::size_t i) { return values(graph, i); },
      {{"loss", std::string(name(graph.loss().kind))}}, path());
  EXPECT_EQ(read_onnx_network(path()).graph.loss().kind, LossKind::kMeanSquaredError);
}

TEST_F(AnOnnxFileOf, ALayerThatIsCalledLogitsHasTheOutputLogits) {
  GraphBuilder build("net");
  const NodeId x = build.input({3}, {.dtype = DType::kF32, .mean = {0.0F}, .stddev = {1.0F}});
  const NodeId hidden = build.dropout(build.dense(x, "fc", 4), "logits");
  write(build.finish(build.dense(hidden, "last", 2)));
  const ModelProto model = stored();
  EXPECT_EQ(model.graph().output(0).name(), "logits");
  EXPECT_EQ(model.graph().node().rbegin()->output(0), "logits");
  EXPECT_EQ(model.graph().node(1).output(0), "logits_");
}

TEST_F(AnOnnxFileOf, TwoGibibytesIsRefused) {
  GraphBuilder build("wide");
  const NodeId x = build.input({1 << 15}, {.dtype = DType::kF32, .mean = {0.0F}, .stddev = {1.0F}});
  const Graph graph = build.finish(build.dense(x, "fc", 1 << 14));
  EXPECT_TRUE(contains(message_of<UsageError>([&] { write_onnx_network(graph, {}, {}, path()); }),
                       "536887296 parameters"));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace syncopate
