// The networks that are read from ONNX files: the nodes that operators become, and the values that
// their weights have.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>

#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "tests/deploy/onnx/onnx_network_case.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

TEST_F(AnOnnxNetwork, HasTheLayersNamesAndShapesOfPyTorch) {
  const OnnxNetwork network = read(small_onnx_network());
  EXPECT_EQ(operations(network), "conv2d batch_norm relu max_pool flatten dense");
  EXPECT_EQ(network.input, "[N, 3, 8, 8] as N, C, H, W");
  EXPECT_EQ(network.graph.name, "net");
  EXPECT_EQ(network.graph.input_shape(), (Shape{8, 8, 3}));
  EXPECT_EQ(network.notes, std::vector<std::string>());
  std::vector<std::string> names;
  for (const OnnxWeights& each : network.weights) names.push_back(each.name);
  EXPECT_EQ(
      names,
      as_words(
          "conv1.weight bn1.weight bn1.bias fc.weight fc.bias bn1.running_mean bn1.running_var"));
  EXPECT_EQ(network.weights[0].shape, (Shape{4, 3, 3, 3}));
  EXPECT_FLOAT_EQ(network.weights[0].values[2], 0.025F);  // in the order of the file
  EXPECT_FLOAT_EQ(network.weights[3].values[64], 0.645F);
}

TEST_F(AnOnnxNetwork, HasTheMomentumOfPyTorch) {
  OnnxModel model = small_onnx_network();
  set(*model.message.mutable_graph()->mutable_node(1), "momentum", 0.9F);
  set(*model.message.mutable_graph()->mutable_node(1), "epsilon", 1e-3F);
  const auto op = operation<BatchNormOp>(read(model));
  EXPECT_EQ(op.momentum, 0.1F);  // 1 - 0.9F is not
  EXPECT_EQ(op.epsilon, 1e-3F);
}

TEST_F(AnOnnxNetwork, ReadsAllWaysOfStoringFloats) {
  const std::vector<float> expected = {0.5F, -2.0F, 1.5F, 0.25F, 3.0F};
  const auto bias_of = [&](const std::function<void(TensorProto&)>& store) {
    OnnxModel model = small_onnx_network();
    TensorProto& bias = *model.message.mutable_graph()->mutable_initializer()->rbegin();
    bias.clear_float_data();
    store(bias);
    return values(read(model), "fc.bias");
  };
  EXPECT_EQ(bias_of([&](TensorProto& bias) {
              for (const float value : expected) bias.add_float_data(value);
            }),
            expected);
  EXPECT_EQ(bias_of([&](TensorProto& bias) { bias.set_raw_data(expected.data(), 20); }), expected);
  EXPECT_EQ(bias_of([&](TensorProto& bias) {
              bias.set_data_type(11);
              for (const float value : expected) bias.add_double_data(value);
            }),
            expected);
  EXPECT_EQ(bias_of([&](TensorProto& bias) {
              bias.set_data_type(10);  // float16
              for (const int half : {0x3800, 0xC000, 0x3E00, 0x3400, 0x4200}) {
                bias.add_int32_data(half);
              }
            }),
            expected);
  EXPECT_EQ(bias_of([&](TensorProto& bias) {
              bias.set_data_type(16);  // bfloat16
              for (const int half : {0x3F00, 0xC000, 0x3FC0, 0x3E80, 0x4040}) {
                bias.add_int32_data(half);
              }
            }),
            expected);
  EXPECT_EQ(bias_of([&](TensorProto& bias) {
              std::ofstream(folder_.path() / "net.data", std::ios::binary)
                  << "12345678" << std::string(reinterpret_cast<const char*>(expected.data()), 20);
              bias.set_data_location(1);
              for (const auto& [key, value] : std::map<std::string, std::string>{
                       {"location", "net.data"}, {"offset", "8"}, {"length", "20"}}) {
                auto& entry = *bias.add_external_data();
                entry.set_key(key);
                entry.set_value(value);
              }
            }),
            expected);
  // `convert` must not overwrite it.
  EXPECT_EQ(read_onnx_network(folder_.path() / "net.onnx").other_files,
            std::vector{folder_.path() / "net.data"});
}

TEST_F(AnOnnxNetwork, MayHaveItsPaddingFromAutoPad) {
  const auto pad_of = [&](const std::string& kind) {
    OnnxModel model = map_of_four();
    model.weights("w", {2, 4, 3, 3});
    NodeProto& conv = model.node("Conv", "conv2", {"map", "w"});
    set_list(conv, "strides", {2, 2});
    set(conv, "auto_pad", kind);
    model.node("GlobalAveragePool", "pool", {"conv2"});
    model.last("Flatten", "flat", {"pool"});
    return std::get<Conv2dOp>(read(model).graph.nodes[2].operation).pad;
  };
  EXPECT_EQ(pad_of("SAME_UPPER"), Padding(0, 0, 1, 1));  // as TensorFlow's "same"
  EXPECT_EQ(pad_of("SAME_LOWER"), Padding(1, 1, 0, 0));
  EXPECT_EQ(pad_of("VALID"), Padding(0));
}

TEST_F(AnOnnxNetwork, HasTransposedConvolutionsWithOutputPadding) {
  OnnxModel model = map_of_four();
  model.weights("up.weight", {4, 2, 3, 3});
  model.weights("up.bias", {2});
  NodeProto& up = model.node("ConvTranspose", "up", {"map", "up.weight", "up.bias"});
  set_list(up, "strides", {2, 2});
  set_list(up, "pads", {1, 1, 1, 1});
  set_list(up, "output_padding", {1, 1});
  model.output("up");
  const OnnxNetwork network = read(model);
  EXPECT_EQ(operation<ConvTranspose2dOp>(network).pad, Padding(1, 1, 0, 0));
  EXPECT_EQ(network.graph.logits_shape(), (Shape{16, 16, 2}));
  EXPECT_EQ(network.weights[1].shape, (Shape{4, 2, 3, 3}));
  model.message.mutable_graph()->mutable_node(1)->mutable_attribute(1)->clear_ints();
  EXPECT_TRUE(
      contains(error_of(model), "with output_padding 1 and pads 0 behind; expected at most 0"));
}

TEST_F(AnOnnxNetwork, HasActivationsThatAFileHasAsSeveralNodes) {
  OnnxModel model = map_of_four();
  model.node("Sigmoid", "gate", {"map"});
  model.node("Mul", "silu", {"map", "gate"});
  NodeProto& hard = model.node("HardSigmoid", "hard", {"silu"});
  set(hard, "alpha", 1.0F / 6.0F);
  model.node("Mul", "swish", {"hard", "silu"});
  model.number("root", 1.4142135F);
  model.number("one", 1.0F);
  model.number("half", 0.5F);
  model.node("Div", "scaled", {"swish", "root"});
  model.node("Erf", "erf", {"scaled"});
  model.node("Add", "sum", {"erf", "one"});
  model.node("Mul", "product", {"swish", "sum"});
  model.node("Mul", "gelu", {"product", "half"});
  model.number("zero", 0.0F);
  model.number("six", 6.0F);
  model.node("Clip", "relu6", {"gelu", "zero", "six"});
  model.node("Sigmoid", "gate2", {"relu6"});
  model.node("Mul", "gated", {"gate2", "map"});  // a product of two values
  model.output("gated");
  EXPECT_EQ(operations(model), "conv2d silu hard-swish gelu relu6 sigmoid multiply");
}

TEST_F(AnOnnxNetwork, TakesTheConstantsThatPyTorchComputes) {
  OnnxModel model({2, 3, 8, 8});
  model.weights("conv.weight", {4, 3, 1, 1});
  // A bias of zeros of a convolution that has none.
  set(model.node("Shape", "shape", {"conv.weight"}), "end", 1);
  model.number("zero", 0.0F);
  model.node("CastLike", "like", {"zero", "x"});
  model.node("Expand", "zeros", {"like", "shape"});
  model.node("Conv", "conv", {"x", "conv.weight", "zeros"});
  // x.view(x.size(0), -1)
  model.node("Shape", "sizes", {"conv"});
  model.list("first", {0}).clear_dims();
  model.node("Gather", "samples", {"sizes", "first"});
  model.list("axis", {0});
  model.node("Unsqueeze", "samples_list", {"samples", "axis"});
  model.list("rest", {-1});
  set(model.node("Concat", "target", {"samples_list", "rest"}), "axis", 0);
  model.node("Reshape", "flat", {"conv", "target"});
  model.weights("fc.weight", {5, 256});
  set(model.last("Gemm", "fc", {"flat", "fc.weight"}), "transB", 1);
  const OnnxNetwork network = read(model);
  EXPECT_EQ(operations(network), "conv2d flatten dense");
  EXPECT_FALSE(operation<Conv2dOp>(network).bias);
  EXPECT_EQ(values(network, "fc.bias"), std::vector<float>(5));
  EXPECT_EQ(network.notes, std::vector<std::string>{
                               "layers without a bias got one of zeros, which is trained: fc"});
  // tf2onnx leaves out a bias of zeros; PyTorch leaves out one that a layer does not have.
  model.message.set_producer_name("pytorch");
  EXPECT_EQ(read(model).weights.size(), 2U);
  EXPECT_TRUE(read(model).notes.empty());
}

// A number of samples that is not fixed is no number of the network.
TEST_F(AnOnnxNetwork, MayReadTheNumberOfSamplesForAShapeAlone) {
  const auto model_with = [](const std::string& last) {
    OnnxModel model({0, 6});
    model.weights("fc.weight", {6, 4});
    model.node("MatMul", "fc", {"x", "fc.weight"});
    model.node("Shape", "shape", {"x"});
    model.list("first", {0}).clear_dims();
    model.node("Gather", "samples", {"shape", "first"});
    set(model.node("Cast", "as_float", {"samples"}), "to", 1);
    model.list("one", {1}).clear_dims();
    model.node("Mul", "same", {"samples", "one"});
    model.list("axis", {0});
    model.node("Unsqueeze", "list", {"same", "axis"});
    model.list("rest", {-1});
    set(model.node("Concat", "target", {"list", "rest"}), "axis", 0);
    set(model.node("Concat", "reversed", {"rest", "list"}), "axis", 0);
    model.list("open", {-1, -1});
    if (last == "Div" || last == "Mul") model.node(last, "end", {"fc", "as_float"});
    if (last == "later bias") {
      model.node("Unsqueeze", "bias", {"as_float", "axis"});
      model.weights("fc2.weight", {4, 1});
      model.node("MatMul", "fc2", {"fc", "fc2.weight"});
      model.node("Add", "end", {"fc2", "bias"});
    }
    if (last == "target" || last == "reversed" || last == "open") {
      model.node("Reshape", "end", {"fc", last});
    }
    model.output("end");
    return model;
  };
  EXPECT_EQ(operations(model_with("target")), "dense");
  for (const char* const op : {"Div", "Mul"}) {
    EXPECT_TRUE(
        contains(error_of(model_with(op)),
                 std::string(op) +
                     " in node end with the number of samples, which is not fixed; expected a"));
  }
  EXPECT_TRUE(
      contains(error_of(model_with("later bias")), "the number of samples, which is not fixed"));
  EXPECT_TRUE(
      contains(error_of(model_with("reversed")), "whose first side is not the number of samples"));
  EXPECT_TRUE(contains(error_of(model_with("open")), "Reshape in node end to two open sides"));
}

TEST_F(AnOnnxNetwork, HasTheMeanOverHeightAndWidth) {
  for (const char* const kind : {"GlobalAveragePool", "attribute", "input"}) {
    OnnxModel model = map_of_four();
    if (kind == std::string("input")) {
      model.list("axes", {-1, -2});
      set(model.last("ReduceMean", "mean", {"map", "axes"}), "keepdims", 0);
    } else {
      NodeProto& mean =
          model.node(kind == std::string("attribute") ? "ReduceMean" : kind, "mean", {"map"});
      if (mean.op_type() == "ReduceMean") set_list(mean, "axes", {2, 3});
      model.list("axes", {2, 3});
      model.last("Squeeze", "flat", {"mean", "axes"});
    }
    EXPECT_EQ(operations(model), "conv2d global_average_pool") << kind;
  }
}

TEST_F(AnOnnxNetwork, JoinsChannelsAndAddsMaps) {
  OnnxModel model = map_of_four();
  model.node("Relu", "relu", {"map"});
  model.node("Add", "sum", {"relu", "map"});
  set(model.node("Concat", "both", {"sum", "map"}), "axis", 1);
  NodeProto& pool = model.node("AveragePool", "pool", {"both"});
  set_list(pool, "kernel_shape", {8, 8});
  model.last("Flatten", "flat", {"pool"});
  const OnnxNetwork network = read(model);
  EXPECT_EQ(operations(network), "conv2d relu add concat average_pool flatten");
  EXPECT_EQ(network.graph.num_classes(), 8);
}

// PyTorch in evaluation mode and tf2onnx store equal values of several layers once.
TEST_F(AnOnnxNetwork, MayShareAListOfValues) {
  for (const char* const producer : {"pytorch", "tf2onnx"}) {
    OnnxModel model({0, 4});
    model.message.set_producer_name(producer);
    model.weights("one", {4, 4});
    model.weights("two", {4, 4});
    model.weights("shifts", {4});
    model.node("Gemm", "first", {"x", "one", "shifts"});
    model.last("Gemm", "again", {"first", "two", "shifts"});
    EXPECT_EQ(operations(model), "dense dense");
    EXPECT_EQ(read(model).notes,
              std::vector<std::string>{"biases or norms that the file stores once for several "
                                       "layers are trained apart: again"});
  }
}

TEST_F(AnOnnxNetwork, MayShareTheValuesOfItsNorms) {
  OnnxModel model = map_of_four();
  model.batch_norm("bn", "map", 4);
  model.node("BatchNormalization", "bn2",
             {"bn", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"});
  model.node("GlobalAveragePool", "mean", {"bn2"});
  model.list("sides", {2, 3});
  model.node("Squeeze", "vector", {"mean", "sides"});
  for (const char* const name : {"norm", "norm2"}) {
    model.node("LayerNormalization", name,
               {name == std::string("norm") ? "vector" : "norm", "bn.weight", "bn.bias"});
  }
  model.output("norm2");
  const OnnxNetwork network = read(model);
  EXPECT_EQ(operations(network),
            "conv2d batch_norm batch_norm global_average_pool layer_norm layer_norm");
  EXPECT_EQ(network.notes,
            std::vector<std::string>{"biases or norms that the file stores once for several "
                                     "layers are trained apart: bn_2, bn_3, bn_4"});
}

TEST_F(AnOnnxNetwork, KeepsDropoutOfTrainingModeAlone) {
  const auto operations_of = [&](float rate, bool is_training) {
    OnnxModel model({0, 6});
    model.number("rate", rate);
    model.list("mode", {is_training ? 1 : 0}).set_data_type(9);
    model.message.mutable_graph()->mutable_initializer(0)->clear_int64_data();
    model.message.mutable_graph()->mutable_initializer(0)->add_int32_data(is_training ? 1 : 0);
    model.node("Dropout", "/drop/Dropout", {"x", "rate", "mode"});
    model.weights("fc.weight", {6, 2});
    model.last("MatMul", "fc", {"/drop/Dropout", "fc.weight"});
    return operations(model);
  };
  EXPECT_EQ(operations_of(0.5F, true), "dropout dense");
  EXPECT_EQ(operations_of(0.0F, true), "dense");
  EXPECT_EQ(operations_of(0.5F, false), "dense");
}

TEST_F(AnOnnxNetwork, SaysThatBatchNormsWereFolded) {
  OnnxModel model({0, 3, 8, 8});
  model.weights("onnx::Conv_25", {4, 3, 1, 1});
  model.weights("onnx::Conv_26", {4});
  model.last("Conv", "/layer1/layer1.0/conv1/Conv", {"x", "onnx::Conv_25", "onnx::Conv_26"});
  const OnnxNetwork network = read(model);
  ASSERT_EQ(network.notes.size(), 1U);
  EXPECT_TRUE(contains(network.notes.front(), "folded the batch norms into 1 layer, such as"));
  EXPECT_EQ(network.weights.front().name, "layer1.0.conv1.weight");
}

TEST_F(AnOnnxNetwork, HasTheSwishOfOpset24) {
  OnnxModel model = map_of_four();
  model.message.mutable_opset_import(0)->set_version(24);
  NodeProto& swish = model.last("Swish", "swish", {"map"});
  EXPECT_EQ(operations(model), "conv2d silu");
  set(swish, "alpha", 2.0F);
  EXPECT_TRUE(contains(error_of(model), "Swish in node swish with alpha 2; expected 1"));
}

TEST_F(AnOnnxNetwork, MayHaveAnOpsetFrom13To25) {
  for (const std::int64_t opset : {13, 17, 25}) {
    OnnxModel model = small_onnx_network();
    model.message.mutable_opset_import(0)->set_version(opset);
    EXPECT_EQ(error_of(model), "");
  }
  for (const std::int64_t opset : {12, 26}) {
    OnnxModel model = small_onnx_network();
    model.message.mutable_opset_import(0)->set_version(opset);
    EXPECT_TRUE(
        contains(error_of(model), "opset " + std::to_string(opset) + "; expected opset 13 to 25"));
  }
}

}  // namespace
}  // namespace syncopate
