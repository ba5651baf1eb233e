// The order of the axes and elements of values in ONNX files, which differs from that of maps in
// memory. onnx_peer.py and keras_peer.py compare the numbers with those of PyTorch and Keras.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/deploy/onnx/onnx_network_case.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

// tf2onnx: the input is [N, H, W, C], and a flattened map has the order H, W, C.
TEST_F(AnOnnxNetwork, ReordersTheDenseWeightsBehindAMapWithItsChannelsLast) {
  OnnxModel model({0, 1, 2, 2});  // H = 1, W = 2, C = 2
  set_list(model.node("Transpose", "first", {"x"}), "perm", {0, 3, 1, 2});
  model.weights("kernel", {2, 2, 1, 1});
  model.node("Conv", "model/conv2d/Conv2D", {"first", "kernel"});
  model.weights("conv_bias", {1, 2, 1, 1});
  model.node("Add", "biased", {"model/conv2d/Conv2D", "conv_bias"});
  set_list(model.node("Transpose", "last", {"biased"}), "perm", {0, 2, 3, 1});
  model.list("target", {-1, 4});
  model.node("Reshape", "flat", {"last", "target"});
  model.weights("matrix", {4, 2}, 1.0F);  // [in, out] with `in` = pixel, channel
  model.node("MatMul", "model/dense/MatMul", {"flat", "matrix"});
  model.weights("bias", {2}, 1.0F);
  model.node("Add", "logits", {"model/dense/MatMul", "bias"});
  model.last("Softmax", "softmax", {"logits"});
  const OnnxNetwork network = read(model);
  EXPECT_EQ(operations(network), "conv2d flatten dense");
  EXPECT_EQ(network.graph.input_shape(), (Shape{1, 2, 2}));
  // Output 0 has 0.5 (pixel 0, channel 0), 2.5 (0, 1), 4.5 (1, 0), 6.5 (1, 1).
  EXPECT_EQ(values(network, "model.dense.weight"),
            (std::vector<float>{0.5F, 4.5F, 2.5F, 6.5F, 1.5F, 5.5F, 3.5F, 7.5F}));
  EXPECT_EQ(values(network, "model.dense.bias"), (std::vector<float>{0.5F, 1.5F}));
  EXPECT_EQ(values(network, "model.conv2d.bias").size(), 2U);
  EXPECT_EQ(network.notes.size(), 1U);
  EXPECT_TRUE(contains(network.notes.front(), "the Softmax at the end"));
}

// The classes are the elements of the vector in the order of the file.
TEST_F(AnOnnxNetwork, MayEndWithAFlattenedMap) {
  OnnxModel model = map_of_four(2, 2);
  model.last("Flatten", "flat", {"map"});
  const OnnxNetwork first = read(model);
  EXPECT_EQ(operations(first), "conv2d transpose reshape");
  EXPECT_EQ(operation<TransposeOp>(first).order, (std::array<int, 3>{2, 0, 1}));
  EXPECT_EQ(first.graph.logits_shape(), Shape{16});
  model = map_of_four(2, 2);
  set_list(model.node("Transpose", "last", {"map"}), "perm", {0, 2, 3, 1});
  model.last("Flatten", "flat", {"last"});
  EXPECT_EQ(operations(model), "conv2d reshape");
  model = map_of_four(1, 1);
  model.last("Flatten", "flat", {"map"});
  EXPECT_EQ(operations(model), "conv2d flatten");
}

// A dense layer behind a flatten has its columns in the order of the map in memory.
TEST_F(AnOnnxNetwork, FlattensMapsForDenseLayersAlone) {
  OnnxModel model = map_of_four(2, 2);
  model.node("Flatten", "flat", {"map"});
  model.number("two", 2.0F);
  model.node("Mul", "twice", {"flat", "two"});
  model.node("Relu", "relu", {"twice"});
  model.weights("fc.weight", {16, 16});
  model.last("MatMul", "fc", {"relu", "fc.weight"});
  EXPECT_EQ(operations(model), "conv2d flatten linear relu dense");
  EXPECT_EQ(read(model).graph.parameters[1].file_axes, (std::array<std::int64_t, 4>{16, 4, 2, 2}));
  // The dense layer's outputs have no order of a map, so the sum of both has that of the file.
  model.node("Add", "sum", {"fc", "relu"});
  model.message.mutable_graph()->mutable_output(0)->set_name("sum");
  EXPECT_EQ(operations(model), "conv2d transpose reshape linear relu dense add");
  EXPECT_EQ(read(model).graph.parameters[1].file_axes, (std::array<std::int64_t, 4>{}));
}

// A layer without kernels or windows does not show the order of the axes of a map.
TEST_F(AnOnnxNetwork, HasTheOrderOfAxesOfTheProgramThatWroteIt) {
  struct Case {
    std::string producer;
    bool is_first;
  };
  for (const auto& [producer, is_first] :
       {Case{"pytorch", true}, Case{"tf2onnx", false}, Case{"syncopate", true}}) {
    for (const std::int64_t channels : {3, 8}) {
      OnnxModel model({0, 5, 6, channels});
      model.message.set_producer_name(producer);
      model.node("Flatten", "flat", {"x"});
      model.weights("fc.weight", {2, 30 * channels});
      set(model.last("Gemm", "fc", {"flat", "fc.weight"}), "transB", 1);
      const OnnxNetwork network = read(model);
      EXPECT_EQ(network.graph.input_shape(),
                is_first ? (Shape{6, channels, 5}) : (Shape{5, 6, channels}))
          << producer;
      EXPECT_EQ(network.input.substr(12), is_first ? " as N, C, H, W" : " as N, H, W, C");
      EXPECT_EQ(std::ranges::count_if(
                    network.notes,
                    [](const std::string& note) { return note.find("is a guess") != note.npos; }),
                0)
          << producer;
    }
  }
}

// Permute of Keras is a Transpose, too; it says nothing of the input's order.
TEST_F(AnOnnxNetwork, OfKerasHasItsChannelsLastInFrontOfAnyTranspose) {
  OnnxModel model({0, 5, 6, 8});
  model.message.set_producer_name("tf2onnx");
  set_list(model.node("Transpose", "permuted", {"x"}), "perm", {0, 2, 1, 3});
  model.node("Flatten", "flat", {"permuted"});
  model.weights("fc.weight", {240, 2});
  model.last("MatMul", "fc", {"flat", "fc.weight"});
  EXPECT_EQ(read(model).graph.input_shape(), (Shape{5, 6, 8}));
  EXPECT_EQ(operations(model), "transpose flatten dense");
  model = OnnxModel({0, 3, 6, 6});  // tf2onnx --inputs-as-nchw
  model.message.set_producer_name("tf2onnx");
  model.weights("kernel", {2, 3, 1, 1});
  model.last("Conv", "conv", {"x", "kernel"});
  EXPECT_EQ(read(model).graph.input_shape(), (Shape{6, 6, 3}));
}

// `export --onnx` brings a map into the order H, W, C by a Transpose for some operators.
TEST_F(AnOnnxNetwork, OfAnExportHasItsChannelsFirstInFrontOfAnyTranspose) {
  OnnxModel model({0, 4, 5, 6});
  set_list(model.node("Transpose", "last", {"x"}), "perm", {0, 3, 1, 2});
  model.weights("kernel", {2, 6, 1, 1});
  model.last("Conv", "conv", {"last", "kernel"});
  EXPECT_EQ(read(model).graph.input_shape(), (Shape{4, 5, 6}));
  model.message.set_producer_name("syncopate");
  EXPECT_EQ(read(model).graph.input_shape(), (Shape{5, 6, 4}));
}

TEST_F(AnOnnxNetwork, SaysThatItGuessesTheOrderOfTheInput) {
  OnnxModel model({0, 5, 6, 3});
  model.node("Flatten", "flat", {"x"});
  model.weights("fc.weight", {90, 2});
  model.last("MatMul", "fc", {"flat", "fc.weight"});
  const std::vector<std::string> notes = read(model).notes;
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes.front(),
            "no operator shows the order of the input's axes; N, H, W, C is a guess, so compare a "
            "prediction with one of the program that wrote the file");
}

}  // namespace
}  // namespace syncopate
