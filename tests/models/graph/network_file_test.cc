// Tests network files: what users write for --model file:NET.json.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "models/zoo/zoo.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

NetworkInput data_of(Shape shape, std::vector<int> head = {}) {
  const auto channels = static_cast<std::size_t>(shape.back());
  return {.sample_shape = std::move(shape),
          .classes = 7,
          .input = {DType::kU8, std::vector<float>(channels, 0.5F),
                    std::vector<float>(channels, 0.25F)},
          .head = std::move(head),
          .takes_image_size = true};
}

Graph parse(const std::string& text, const NetworkInput& data = data_of({8, 8, 2})) {
  return parse_network_file(text, "net.json", data);
}

// Returns the message for a file; empty if the file is read.
std::string refusal(const std::string& text, const NetworkInput& data = data_of({8, 8, 2})) {
  try {
    (void)parse(text, data);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  } catch (const ShapeError& error) {
    return error.what();
  }
}

// Returns a file of these nodes, the first on line 3.
std::string file_of(const std::vector<std::string>& nodes) {
  std::string text = "{\"name\": \"n\", \"nodes\": [";
  for (std::size_t i = 0; i < nodes.size(); ++i) text += (i == 0 ? "\n\n" : ",\n") + nodes[i];
  return text + "]}\n";
}

const std::string kInput = R"({"op": "input"})";
const std::string kFlatten = R"({"op": "flatten"})";
const std::string kDense = R"({"op": "dense", "name": "fc", "features": "classes"})";
const std::string kLoss = R"({"op": "softmax-cross-entropy"})";

TEST(ANetworkFile, MayNameTheShapeOfItsSamples) {
  const NetworkInput data = data_of({8, 8, 2});
  const Graph graph = parse(file_of({kInput, kFlatten, kDense, kLoss}), data);
  const std::string text = to_network_file(graph, InputShape::kFixed);
  EXPECT_TRUE(contains(text, "\"shape\": [8,8,2]"));
  EXPECT_EQ(to_text(parse(text, data)), to_text(graph));
  NetworkInput larger = data_of({16, 16, 2});
  EXPECT_TRUE(contains(refusal(text, larger), "give --image-size 8"));
  larger.takes_image_size = false;  // such as arrays of NumPy
  EXPECT_TRUE(contains(refusal(text, larger), "16x16x2; give data of that shape, or take"));
}

// Of programs that have no axis of channels, such as rows of features.
TEST(ANetworkFile, MayHaveAPlaneAsItsInput) {
  const NetworkInput data = data_of({6, 8, 1});
  const std::string text =
      file_of({R"({"op": "input", "shape": [6, 8]})", kFlatten, kDense, kLoss});
  const Graph graph = parse(text, data);
  EXPECT_EQ(graph.input_shape(), (Shape{6, 8, 1}));
  EXPECT_TRUE(std::get<InputOp>(graph.first_input().operation).is_plane);
  EXPECT_EQ(to_text(parse_graph(to_text(graph))), to_text(graph));
  EXPECT_TRUE(std::get<InputOp>(parse_graph(to_text(graph)).first_input().operation).is_plane);
  EXPECT_TRUE(contains(to_network_file(graph, InputShape::kFixed), "\"shape\": [6,8]"));
  EXPECT_TRUE(contains(refusal(text, data_of({6, 9, 1})), "samples of 6x8x1"));
}

TEST(ANetworkFile, GivesTheNetworkThatItWasPrintedFrom) {
  for (const NetworkRow& row : networks()) {
    NetworkInput data = data_of({64, 64, 3});
    if (row.labels_pixels) data.target_shape = {64, 64};
    for (const std::vector<int>& head : {std::vector<int>{}, std::vector<int>{16, 8}}) {
      if (row.labels_pixels && !head.empty()) continue;
      NetworkInput with_head = data;
      with_head.head = head;
      Graph graph = build_network(row.name, with_head);
      EXPECT_EQ(to_text(parse(to_network_file(graph), data)), to_text(graph)) << row.name;
      graph.set_label_smoothing(0.1F);  // a flag of train, which no file holds
      EXPECT_EQ(parse(to_network_file(graph), data).loss().label_smoothing, 0.0F);
    }
  }
}

TEST(ANetworkFile, TakesTheHeadInFrontOfTheLayerThatGivesTheClasses) {
  const NetworkInput with_head = data_of({64, 64, 3}, {16, 8});
  const Graph plain = build_network("resnet20", data_of({64, 64, 3}));
  EXPECT_EQ(to_text(parse(to_network_file(plain), with_head)),
            to_text(build_network("resnet20", with_head)));
}

// Two layers of one name would make a checkpoint that cannot be read.
TEST(ANetworkFile, RefusesAHeadWhoseLayersHaveTheNameOfAnother) {
  const std::string text = file_of(
      {kInput, kFlatten, R"({"op": "dense", "name": "fc.0", "features": 4})", kDense, kLoss});
  EXPECT_EQ(refusal(text), "");
  EXPECT_EQ(refusal(text, data_of({8, 8, 2}, {16})),
            "net.json:6: node 'fc' (dense): there is already a node 'fc.0'");
}

TEST(ANetworkFile, RefusesAHeadWithoutALayerThatGivesTheClasses) {
  const std::string text =
      file_of({kInput, kFlatten, R"({"op": "dense", "name": "fc", "features": 7})", kLoss});
  EXPECT_EQ(refusal(text), "");
  EXPECT_EQ(refusal(text, data_of({8, 8, 2}, {16})),
            "net.json:6: node 3 (softmax-cross-entropy): --head adds layers before the dense layer "
            "with \"features\": \"classes\", and there is none");
}

TEST(ANetworkFile, TakesInputAndClassesFromTheData) {
  const Graph graph = parse(file_of({kInput, kFlatten, kDense, kLoss}), data_of({5, 6, 3}));
  EXPECT_EQ(graph.name, "n");
  EXPECT_EQ(graph.input_shape(), (Shape{5, 6, 3}));
  EXPECT_EQ(graph.num_classes(), 7);
  EXPECT_EQ(graph.first_input().name, "x");
  EXPECT_EQ(std::get<InputOp>(graph.first_input().operation).stddev, std::vector<float>(3, 0.25F));
}

TEST(ANetworkFile, HasDefaultsForWhatItLeavesOut) {
  const Graph graph =
      parse(file_of({kInput, R"({"op": "conv2d", "name": "c", "channels": 4})",
                     R"({"op": "batch_norm", "name": "b"})", R"({"op": "max_pool"})",
                     R"({"op": "conv2d", "name": "d", "channels": 4, "kernel": 1})",
                     R"({"op": "layer_norm", "name": "l"})", R"({"op": "dropout", "name": "o"})",
                     kFlatten, kDense, kLoss}));
  GraphBuilder build("n");
  NodeId x = build.input({8, 8, 2}, data_of({8, 8, 2}).input);
  x = build.max_pool(build.batch_norm(build.conv2d(x, "c", 4, {}), "b"));
  x = build.layer_norm(build.conv2d(x, "d", 4, {.kernel_h = 1, .kernel_w = 1}), "l");
  x = build.dropout(x, "o", {.rate = 0.5F});
  EXPECT_EQ(to_text(graph), to_text(build.finish(build.dense(build.flatten(x), "fc", 7))));
}

TEST(ANetworkFile, MayHaveDenseLayersWithoutBias) {
  const Graph graph = parse(
      file_of({kInput, kFlatten, R"({"op": "dense", "name": "a", "features": 4, "bias": false})",
               R"({"op": "dense", "name": "fc", "features": "classes", "bias": false})", kLoss}));
  ASSERT_EQ(graph.parameters.size(), 2U);
  EXPECT_EQ(graph.parameters[0].name, "a.weight");
  EXPECT_EQ(graph.parameters[1].name, "fc.weight");
  EXPECT_EQ(first_difference(graph, parse_graph(to_text(graph))), "");
}

TEST(ANetworkFile, ReadsEarlierNodesByNameOrNumber) {
  const std::string relu = R"({"op": "relu", "name": "r", "inputs": ["x"]})";
  const std::string named = R"({"op": "add", "inputs": ["r", "x"]})";
  const std::string numbered = R"({"op": "add", "inputs": [1, 0]})";
  const std::string one = to_text(parse(file_of({kInput, relu, named, kFlatten, kDense, kLoss})));
  EXPECT_EQ(to_text(parse(file_of({kInput, relu, numbered, kFlatten, kDense, kLoss}))), one);
  // The name of a node without parameters is part of the file, not of the network.
  EXPECT_FALSE(contains(one, "\"r\""));
}

struct Mistake {
  std::string text;
  std::string expected;  // how the message begins
};

std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.expected;
}

// Returns a file whose second node is `node`.
std::string second(const std::string& node) {
  return file_of({kInput, node, kFlatten, kDense, kLoss});
}

// Returns a node that makes a map 128 times as high and wide.
std::string enlarge(const std::string& name, int channels) {
  return R"({"op": "conv_transpose2d", "name": ")" + name + R"(", "kernel": 1, "stride": 128, )" +
         R"("channels": )" + std::to_string(channels) + "}";
}

std::vector<Mistake> mistakes() {
  const std::string conv = R"({"op": "conv2d", "name": "c", "channels": )";
  std::string deep(100000, '[');
  const std::string nested = std::string(1000000, '[') + std::string(1000000, ']');
  std::string many = R"({"name": "n", "nodes": [)" + kInput;
  for (int i = 0; i < 10001; ++i) many += ",\n" + std::string(R"({"op": "relu"})");
  return {
      // No JSON, or JSON of another form.
      {"", "net.json:1: no JSON: "},
      {"a network", "net.json:1: no JSON: "},
      {deep, "net.json:1: more than 8 lists or objects in one another"},
      {"{\"name\": " + nested + ", \"nodes\": [1]}", "net.json:1: more than 8 lists or objects"},
      {second("{\"op\": " + nested + "}"), "net.json:4: more than 8 lists or objects"},
      {second("{\"op\": [[[[1]]]]}"), "net.json:4: node 1: 'op' is [[[[1]]]]; expected the name"},
      {std::string("PK\x03\x04", 4), "net.json:1: no JSON: "},
      {file_of({kInput, kFlatten, "{\"op\": "}), "net.json:5: no JSON: "},
      {"[]", "net.json:1: expected a JSON object {\"name\": ..., \"nodes\": [...]}"},
      {R"({"nodes": [1]})", "net.json:1: 'name' is missing; expected the network's name"},
      {R"({"name": "n"})", "net.json:1: 'nodes' is missing; expected a list of nodes"},
      {R"({"name": "n", "nodes": []})", "net.json:1: 'nodes' is empty; expected a list"},
      {R"({"name": "n", "nodes": 3})", "net.json:1: 'nodes' is no list; expected a list"},
      {R"({"name": 3, "nodes": [1]})", "net.json:1: 'name' is 3; expected the network's name"},
      {R"({"name": "a\u0007b", "nodes": [1]})", "net.json:1: 'name' is \"a\\u0007b\"; expected"},
      {R"({"name": "n", "nodes": [1], "layers": []})",
       "net.json:1: 'layers' is no field of a network; its fields are name, nodes"},
      {R"({"name": "n", "name": "m", "nodes": [1]})", "net.json:1: 'name' is given twice"},
      {R"({"name": "n", "nodes": [1]})", "net.json:1: node 0: expected an object"},
      {many + "]}", "net.json:10001: expected at most 10000 nodes"},
      // Operations and fields.
      {second("[3]"), "net.json:4: node 1: expected an object"},
      {second(R"({"name": "a"})"), "net.json:4: node 1: 'op' is missing"},
      {second(R"({"op": 3})"), "net.json:4: node 1: 'op' is 3; expected the name of an operation"},
      {second(R"({"op": "conv3d", "name": "c"})"),
       "net.json:4: node 'c' (conv3d): no such operation; choose one of input, conv2d"},
      {second(R"({"op": "relu", "op": "add"})"), "net.json:4: 'op' is given twice"},
      {second(R"({"op": "relu", "slope": 0.1})"),
       "net.json:4: node 1 (relu): 'slope' is no field of relu, which has none"},
      {second(conv + R"(4, "strides": 2})"),
       "net.json:4: node 'c' (conv2d): 'strides' is no field of conv2d; its fields are channels"},
      {second(R"({"op": "conv2d", "channels": 4})"), "net.json:4: node 1 (conv2d): 'name' is"},
      {second(R"({"op": "conv2d", "name": "c"})"),
       "net.json:4: node 'c' (conv2d): 'channels' is missing; expected a whole number"},
      {second(R"({"op": "relu", "name": "fc/\n"})"), "net.json:4: node 1 (relu): the name "},
      {second(R"({"op": "relu", "name": ""})"), "net.json:4: node 1 (relu): the name "},
      {second(R"({"op": "dense", "name": "d", "features": 4, "init": "normal"})"),
       "net.json:4: node 'd' (dense): the initial distribution 'normal' is not known"},
      // Numbers.
      {second(conv + "0}"), "net.json:4: node 'c' (conv2d): 'channels' is 0; expected a whole"},
      {second(conv + "-4}"), "net.json:4: node 'c' (conv2d): 'channels' is -4"},
      {second(conv + "4.5}"), "net.json:4: node 'c' (conv2d): 'channels' is 4.5"},
      {second(conv + "\"4\"}"), "net.json:4: node 'c' (conv2d): 'channels' is \"4\""},
      {second(conv + "18446744073709551615}"), "net.json:4: node 'c' (conv2d): 'channels' is 184"},
      {second(conv + R"(4, "kernel": [3, 3, 3]})"), "net.json:4: node 'c' (conv2d): 'kernel' has"},
      {second(conv + R"(4, "kernel": [3, 0]})"), "net.json:4: node 'c' (conv2d): 'kernel' is 0"},
      {second(conv + R"(4, "stride": 0})"), "net.json:4: node 'c' (conv2d): 'stride' is 0"},
      {second(conv + R"(4, "bias": 1})"), "net.json:4: node 'c' (conv2d): 'bias' is 1; expected t"},
      {second(R"({"op": "batch_norm", "name": "b", "epsilon": 0})"),
       "net.json:4: node 'b' (batch_norm): 'epsilon' is 0"},
      {second(R"({"op": "layer_norm", "name": "l", "epsilon": 0})"),
       "net.json:4: node 'l' (layer_norm): 'epsilon' is 0; expected more"},
      {second(R"({"op": "layer_norm", "name": "l", "momentum": 0.1})"),
       "net.json:4: node 'l' (layer_norm): 'momentum' is no field of layer_norm; its fields are e"},
      {second(R"({"op": "dropout"})"), "net.json:4: node 1 (dropout): 'name' is missing; the elem"},
      {second(R"({"op": "dropout", "name": "d", "rate": 1})"),
       "net.json:4: node 'd' (dropout): 'rate' is 1; expected less"},
      {second(R"({"op": "dropout", "name": "d", "rate": -0.1})"),
       "net.json:4: node 'd' (dropout): 'rate' is -0.1; expected 0 to 1"},
      {second(R"({"op": "dropout", "name": "d", "p": 0.1})"),
       "net.json:4: node 'd' (dropout): 'p' is no field of dropout; its fields are rate"},
      {second(R"({"op": "layer_norm"})"), "net.json:4: node 1 (layer_norm): 'name' is missing"},
      {second(R"({"op": "batch_norm", "name": "b", "momentum": true})"),
       "net.json:4: node 'b' (batch_norm): 'momentum' is true; expected 0 to 1"},
      {second(conv + "\"" + std::string(1000, 'x') + "\"}"),
       "net.json:4: node 'c' (conv2d): 'channels' is \"" + std::string(59, 'x') + "...; expected"},
      {second(R"({"op": "batch_norm", "name": "b", "momentum": 1e999})"),
       "net.json:4: number overflow parsing '1e999'"},
      // Shapes and sizes.
      {second(conv + R"(4, "kernel": 9})"),
       "net.json:4: node 'c' (conv2d): a window of 9 with stride 1 and padding 0 does not fit"},
      {second(conv + R"(4, "kernel": 1, "pad": 1})"),
       "net.json:4: node 'c' (conv2d): a padding of 1 with a kernel of 1x1; expected a padding"},
      {second(conv + R"(4, "pad": [0, 0, 0, 3]})"),
       "net.json:4: node 'c' (conv2d): a padding of 3 with a kernel of 3x3; expected a padding"},
      {second(conv + R"(4, "pad": [1, 1]})"),
       "net.json:4: node 'c' (conv2d): 'pad' has not 4 sides"},
      {second(conv + R"(4, "pad": [0, 0, -1, 0]})"), "net.json:4: node 'c' (conv2d): 'pad' is -1"},
      {second(R"({"op": "max_pool", "window": 2, "pad": 1})"),
       "net.json:4: node 1 (max_pool): a w"},
      {file_of({kInput, kDense, kLoss}),
       "net.json:4: node 'fc' (dense): expected a vector [F], found [8, 8, 2]; flatten it first"},
      {file_of({kInput, kLoss}),
       "net.json:4: node 1 (softmax-cross-entropy): expected logits [7], one per class of the "
       "data; "
       "found [8, 8, 2]"},
      {second(conv + R"(4, "groups": 3})"),
       "net.json:4: node 'c' (conv2d): 3 groups of 2 input and 4 output channels; expected"},
      {second(conv + R"(4, "groups": 0})"), "net.json:4: node 'c' (conv2d): 'groups' is 0; expect"},
      {second(R"({"op": "conv_transpose2d", "name": "c", "channels": 4, "groups": 2})"),
       "net.json:4: node 'c' (conv_transpose2d): 'groups' is no field of conv_transpose2d; its"},
      {second(R"({"op": "conv_transpose2d", "name": "c", "channels": 4, "pad": 3})"),
       "net.json:4: node 'c' (conv_transpose2d): a padding of 3 with a kernel of 3x3; expected"},
      {second(conv + R"(16777216, "kernel": 128, "pad": 127})"),
       "net.json:4: node 'c' (conv2d): its output is"},
      {file_of({kInput, kFlatten, R"({"op": "dense", "name": "a", "features": 16777216})",
                R"({"op": "dense", "name": "b", "features": 16777216})", kLoss}),
       "net.json:6: node 'b' (dense): b.weight has 281474976710656 elements"},
      {file_of({kInput, enlarge("a", 1), enlarge("b", 1), enlarge("c", 1 << 24), kFlatten, kDense,
                kLoss}),  // 64 bits do not hold the number of elements
       "net.json:6: node 'c' (conv_transpose2d): its output is [14680065, 14680065, 16777216] for"},
      {second(R"({"op": "relu", "name": "optimizer.ema.fc"})"),
       "net.json:4: node 1 (relu): the name begins with 'optimizer.'"},
      {file_of({kInput, kFlatten, R"({"op": "dense", "name": "h", "inputs": [1], "features": 5})",
                R"({"op": "concat", "inputs": ["h", 1]})", kDense, kLoss}),
       "net.json:6: node 3 (concat): found a flattened map, whose elements have the order H, W, C"},
      {file_of(
           {kInput, kFlatten, R"({"op": "reshape", "shape": [8, 8, 2]})", kFlatten, kDense, kLoss}),
       "net.json:5: node 2 (reshape): found a flattened map, whose elements have the order"},
      // Inputs.
      {file_of({kFlatten, kInput, kDense, kLoss}),
       "net.json:3: node 0 (flatten): there is no node before it; the first node is {\"op\": \"in"},
      {second(R"({"op": "relu", "inputs": ["late"]})"),
       "net.json:4: node 1 (relu): input 'late' is not the name of an earlier node"},
      {file_of({kInput, R"({"op": "add", "name": "a", "inputs": ["x", "b"]})",
                R"({"op": "relu", "name": "b"})", kFlatten, kDense, kLoss}),
       "net.json:4: node 'a' (add): input 'b' is not the name of an earlier node"},  // a cycle
      {second(R"({"op": "relu", "name": "r", "inputs": ["r"]})"),
       "net.json:4: node 'r' (relu): input 'r' is not"},
      {second(R"({"op": "relu", "inputs": [1]})"),
       "net.json:4: node 1 (relu): 'inputs' is 1; expected a whole number from 0 to 0"},
      {second(R"({"op": "relu", "inputs": ["x", "x"]})"), "net.json:4: node 1 (relu): 'inputs' is"},
      {second(R"({"op": "add"})"), "net.json:4: node 1 (add): 'inputs' is missing"},
      {second(R"({"op": "relu", "inputs": "x"})"), "net.json:4: node 1 (relu): 'inputs' is \"x\""},
      {second(R"({"op": "relu", "name": "fc"})"),
       "net.json:6: node 3 (dense): the name 'fc' is that of node 1, too"},
      {second(R"({"op": "relu", "name": "x"})"), "net.json:4: node 1 (relu): the name 'x' is that"},
      {file_of({kInput, R"({"op": "relu", "name": "r"})", R"({"op": "flatten", "inputs": ["x"]})",
                kDense, kLoss}),
       "net.json:4: node 'r' (relu): no later node reads it"},
      // What the data and the flags give.
      {file_of({R"({"op": "input", "mean": [0.5, 0.5]})", kFlatten, kDense, kLoss}),
       "net.json:3: node 'x' (input): dtype, mean and stddev come from --data"},
      {file_of({R"({"op": "input", "shape": [4, 4, 2]})", kFlatten, kDense, kLoss}),
       "net.json:3: node 'x' (input): the network is one for samples of 4x4x2, and the data have "
       "8x8x2; give --image-size 4, or take"},
      {file_of({R"({"op": "input", "shape": [4, 6, 2]})", kFlatten, kDense, kLoss}),
       "net.json:3: node 'x' (input): the network is one for samples of 4x6x2, and the data have "
       "8x8x2; give --image-size 4x6, or take"},
      {file_of({R"({"op": "input", "shape": [8, 8, 3]})", kFlatten, kDense, kLoss}),
       "net.json:3: node 'x' (input): the network is one for samples of 8x8x3, and the data have "
       "8x8x2; give data of that shape"},
      {second(kInput), "net.json:4: node 1 (input): the name 'x' is that of node 0, too"},
      {file_of({kInput, kFlatten, kDense,
                R"({"op": "softmax-cross-entropy", "label_smoothing": 0.1})"}),
       "net.json:6: node 3 (softmax-cross-entropy): 'label_smoothing' is a flag of train"},
      // The loss.
      {file_of({kInput, kFlatten, kDense}),
       "net.json:5: node 'fc' (dense): the last node is no loss; expected {\"op\": \"softmax-cros"},
      {file_of({kInput, kFlatten, kLoss, kDense, kLoss}),
       "net.json:5: node 2 (softmax-cross-entropy): a loss is the last node, and more nodes"},
  };
}

class AWrongNetworkFile : public testing::TestWithParam<Mistake> {};

TEST_P(AWrongNetworkFile, IsRefusedWithItsLineAndNode) {
  const std::string message = refusal(GetParam().text);
  EXPECT_TRUE(message.starts_with(GetParam().expected)) << message;
  EXPECT_LE(message.size(), 500U);
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Each, AWrongNetworkFile, testing::ValuesIn(mistakes()));

TEST(ANetworkFile, MustEndWithALossOfTheDatasTargets) {
  NetworkInput data = data_of({8, 8, 2});
  data.target_shape = {7};
  data.target_dtype = DType::kF32;
  const auto file_with = [](const std::string& loss) {
    return file_of({kInput, kFlatten, kDense, R"({"op": ")" + loss + R"("})"});
  };
  EXPECT_EQ(parse(file_with("mean-squared-error"), data).target_shape(), Shape{7});
  EXPECT_EQ(parse(file_with("binary-cross-entropy"), data).target_dtype(), DType::kF32);
  EXPECT_TRUE(refusal(file_with("softmax-cross-entropy"), data)
                  .starts_with("net.json:6: node 3 (softmax-cross-entropy): softmax-cross-entropy "
                               "needs classes as targets, and the data have numbers; end the "
                               "network with mean-squared-error or binary-cross-entropy"));
  EXPECT_TRUE(refusal(file_with("mean-squared-error"))
                  .starts_with("net.json:6: node 3 (mean-squared-error): mean-squared-error needs "
                               "numbers as targets, and the data have classes; end the network "
                               "with softmax-cross-entropy"));
  const std::string few = R"({"op": "dense", "name": "fc", "features": 5})";
  EXPECT_TRUE(refusal(file_of({kInput, kFlatten, few, R"({"op": "mean-squared-error"})"}), data)
                  .starts_with("net.json:6: node 3 (mean-squared-error): expected outputs [7], one "
                               "per number of the data; found [5]"));
}

TEST(ANetworkFile, IsRefusedWhereverItIsCut) {
  const std::string text = file_of({kInput, kFlatten, kDense, kLoss});
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    EXPECT_TRUE(refusal(text.substr(0, length)).starts_with("net.json:")) << length;
  }
}

TEST(ANetworkFile, IsRefusedIfNothingInItCanBeTrained) {
  const std::string pool = R"({"op": "global_average_pool"})";
  EXPECT_EQ(refusal(file_of({kInput, pool, kLoss}), data_of({8, 8, 7})),
            "net.json:5: node 2 (softmax-cross-entropy): no layer has parameters, so there is "
            "nothing to train; add a dense layer");
}

TEST(ANetworkFile, IsRefusedIfItCannotBeRead) {
  EXPECT_THROW((void)build_network("file:/none/net.json", data_of({8, 8, 2})), FileError);
  EXPECT_THROW((void)build_network("file:/tmp", data_of({8, 8, 2})), FileError);
  EXPECT_THROW((void)build_network("file:/dev/zero", data_of({8, 8, 2})), FileError);
}

TEST(AModelOfAnotherProgram, IsToldHowItIsConverted) {
  const auto refusal_of = [](const std::string& model) -> std::string {
    return message_of<UsageError>([&] { (void)build_network(model, data_of({8, 8, 2})); });
  };
  const std::string kThen =
      " net.json net.safetensors`, and give --model file:net.json --init-from net.safetensors";
  EXPECT_EQ(refusal_of("file:a/model.onnx"),
            "--model file:a/model.onnx: this is an ONNX file; run `syncopate convert a/model.onnx" +
                kThen);
  EXPECT_EQ(refusal_of("net.py"),
            "--model net.py: networks of PyTorch and Keras are read as ONNX files; export one, as "
            "`syncopate convert --help` shows, run `syncopate convert model.onnx" +
                kThen);
  for (const char* const name : {"file:net.pt", "net.pth", "model.keras", "file:m.h5"}) {
    EXPECT_TRUE(contains(refusal_of(name), "syncopate convert")) << name;
  }
  EXPECT_EQ(refusal_of("net.json"), "--model net.json: for a network file, give file:net.json");
  EXPECT_TRUE(contains(refusal_of("w.safetensors"), "give --init-from w.safetensors"));
}

}  // namespace
}  // namespace syncopate
