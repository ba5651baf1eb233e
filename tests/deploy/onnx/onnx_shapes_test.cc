// Operators of ONNX that reshape, cut and multiply maps: the nodes that they become, and what
// is refused. onnx_peer.py compares their numbers with PyTorch and Keras.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/deploy/onnx/onnx_map_case.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

TEST_F(AnOnnxMap, IsMultipliedByTheFactorsOfItsChannels) {
  add("GlobalAveragePool", "mean", {"map"});
  model_.weights("squeeze.weight", {2, 4, 1, 1});
  add("Conv", "squeeze", {"mean", "squeeze.weight"});
  add("Relu", "relu", {"squeeze"});
  model_.weights("excite.weight", {4, 2, 1, 1});
  add("Conv", "excite", {"relu", "excite.weight"});
  set(add("HardSigmoid", "gate", {"excite"}), "alpha", 1.0F / 6.0F);
  add("Mul", "gated", {"gate", "map"});
  EXPECT_EQ(operations("gated"),
            "global_average_pool reshape conv2d relu conv2d hard-sigmoid multiply");
  add("Sigmoid", "pixel", {"mean"});
  add("Mul", "by_pixel", {"map", "pixel"});
  EXPECT_EQ(operations("by_pixel"), "global_average_pool sigmoid multiply");
  add("Add", "sum", {"map", "pixel"});
  EXPECT_EQ(refusal("sum"),
            "Add in node sum of [N, 4, 6, 8] and [N, 4, 1, 1]; expected equal shapes");
}

TEST_F(AnOnnxMap, HasItsElementsChangedByNumbers) {
  const auto linear_of = [&](const std::string& op, const std::vector<std::string>& inputs) {
    const std::string name = op + inputs[0] + inputs[1];
    add(op, name, inputs);
    const auto found = operation<ActivationOp>(name);
    EXPECT_EQ(found.kind, Activation::kLinear);
    return std::pair(found.factor, found.offset);
  };
  number("four", 4.0F);
  EXPECT_EQ(linear_of("Mul", {"map", "four"}), std::pair(4.0F, 0.0F));
  EXPECT_EQ(linear_of("Div", {"map", "four"}), std::pair(0.25F, 0.0F));
  EXPECT_EQ(linear_of("Add", {"four", "map"}), std::pair(1.0F, 4.0F));
  EXPECT_EQ(linear_of("Sub", {"map", "four"}), std::pair(1.0F, -4.0F));
  EXPECT_EQ(linear_of("Sub", {"four", "map"}), std::pair(-1.0F, 4.0F));
  // 4 ** -0.5, which PyTorch leaves to the file.
  number("exponent", -0.5F);
  add("Pow", "root", {"four", "exponent"});
  EXPECT_EQ(linear_of("Mul", {"map", "root"}), std::pair(0.5F, 0.0F));
  add("Div", "quotient", {"four", "map"});
  EXPECT_EQ(refusal("quotient"), "Div in node quotient by a value");
  number("zero", 0.0F);
  add("Div", "infinite", {"map", "zero"});
  EXPECT_EQ(refusal("infinite"), "Div in node infinite by 0");
  floats("several", {1, 2});
  add("Mul", "by_several", {"map", "several"});
  EXPECT_EQ(refusal("by_several"), "Mul in node by_several by a constant that is no number");
  add("Sub", "difference", {"map", "map"});
  EXPECT_EQ(operations("difference"), "linear add");
}

// F.scaled_dot_product_attention of PyTorch: the square root of a side of a shape.
TEST_F(AnOnnxMap, IsDividedByTheSquareRootOfASide) {
  add("Shape", "shape", {"map"});
  add("Slice", "side", {"shape", list("from", {1}), list("to", {2})});
  set(add("Cast", "channels", {"side"}), "to", 1);
  add("Sqrt", "root", {"channels"});
  add("Div", "scaled", {"map", "root"});
  EXPECT_EQ(operation<ActivationOp>("scaled").factor, 0.5F);
}

TEST_F(AnOnnxMap, IsClippedToAnyBounds) {
  number("low", -1.5F);
  number("high", 2.0F);
  add("Clip", "both", {"map", "low", "high"});
  EXPECT_EQ(operation<ActivationOp>("both").low, -1.5F);
  EXPECT_EQ(operation<ActivationOp>("both").high, 2.0F);
  add("Clip", "above", {"map", "", "high"});
  EXPECT_EQ(operation<ActivationOp>("above").low, std::numeric_limits<float>::lowest());
  add("Clip", "inverted", {"map", "high", "low"});
  EXPECT_TRUE(contains(refusal("inverted"), "expected the lower one first"));
  add("HardSigmoid", "default", {"map"});  // 0.2 * x + 0.5, not the hard sigmoid of PyTorch
  EXPECT_EQ(operations("default"), "linear clip");
}

// x.flatten(2).transpose(1, 2) is the order that the map has in memory.
TEST_F(AnOnnxMap, IsASequenceOfItsPixelsWithoutATranspose) {
  add("Reshape", "pixels", {"map", list("sides", {0, 4, -1})});
  set_list(add("Transpose", "rows", {"pixels"}), "perm", {0, 2, 1});
  model_.weights("matrix", {4, 5}, 1.0F);
  add("MatMul", "dense", {"rows", "matrix"});
  floats("bias", {1, 2, 3, 4, 5});
  add("Add", "biased", {"bias", "dense"});
  EXPECT_EQ(operations("biased"), "reshape conv2d");
  const OnnxNetwork network = read("biased");
  EXPECT_EQ(network.weights[1].shape, (Shape{5, 4, 1, 1}));
  EXPECT_EQ(network.weights[1].values[1], 5.5F);  // input 1 of output 0
  EXPECT_EQ(network.weights[2].values, (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(network.graph.nodes[2].shape, (Shape{1, 48, 4}));
  // The mean over the pixels, and the sequence as a map again.
  list("first", {1});
  set(add("ReduceMean", "mean", {"rows", "first"}), "keepdims", 0);
  EXPECT_EQ(operations("mean"), "reshape global_average_pool");
  add("Reshape", "map_again", {"pixels", list("map_sides", {-1, 4, 6, 8})});
  EXPECT_EQ(operations("map_again"), "reshape reshape");
}

TEST_F(AnOnnxMap, HasItsElementsInTheOrderOfTheFileWhereThatMatters) {
  // [N, 4, 6, 8] to [N, 2, 12, 8]: the elements of the file are C, H, W.
  add("Reshape", "reshaped", {"map", list("sides", {-1, 2, 12, 8})});
  EXPECT_EQ(operations("reshaped"), "transpose reshape");
  EXPECT_EQ(operation<TransposeOp>("reshaped").order, (std::array<int, 3>{2, 0, 1}));
  set_list(add("Transpose", "transposed", {"map"}), "perm", {0, 2, 1, 3});
  EXPECT_EQ(operations("transposed"), "transpose transpose");
  // A convolution of the file's channels.
  model_.weights("next.weight", {3, 6, 1, 1});
  add("Conv", "next", {"transposed", "next.weight"});
  EXPECT_EQ(operations("next"), "transpose transpose transpose conv2d");
  EXPECT_EQ(read("next").graph.nodes[5].shape, (Shape{4, 8, 3}));
  set_list(add("Transpose", "samples", {"map"}), "perm", {1, 0, 2, 3});
  EXPECT_EQ(refusal("samples"),
            "Transpose in node samples of [N, 4, 6, 8] to the order 1, 0, 2, 3");
  add("Flatten", "vector", {"map"});
  add("Reshape", "late", {"vector", list("late_sides", {-1, 8, 24})});
  EXPECT_EQ(operations("late"), "transpose reshape reshape");
  EXPECT_EQ(operation<TransposeOp>("late").order, (std::array<int, 3>{2, 0, 1}));
}

TEST_F(AnOnnxMap, HasASoftmaxAndMeansOverItsAxes) {
  set(add("Softmax", "channels", {"map"}), "axis", 1);
  EXPECT_EQ(operations("channels"), "softmax");
  add("Softmax", "columns", {"map"});
  EXPECT_EQ(operations("columns"), "transpose softmax");
  set(add("Softmax", "rows", {"map"}), "axis", 2);
  EXPECT_EQ(
      refusal("rows"),
      "Softmax in node rows over axis 2 of [N, 4, 6, 8]; expected the channels or the last axis");
  list("one", {1});
  add("ReduceMean", "mean", {"map", "one"});
  EXPECT_EQ(operations("mean"), "transpose reduce_mean");
  EXPECT_EQ(read("mean").graph.logits_shape(), (Shape{1, 6, 8}));
  set(add("ReduceMean", "dropped", {"map", list("two", {1, -1})}), "keepdims", 0);
  EXPECT_EQ(operations("dropped"), "transpose reduce_mean flatten");
  EXPECT_EQ(read("dropped").graph.logits_shape(), Shape{6});
  add("ReduceMean", "samples", {"map", list("zero", {0})});
  EXPECT_EQ(refusal("samples"),
            "ReduceMean in node samples over the axes 0 of [N, 4, 6, 8]; expected axes of a map");
}

TEST_F(AnOnnxMap, HasPartsOfItsChannels) {
  list("one", {1});
  list("two", {2});
  list("three", {3});
  add("Slice", "slice", {"map", "one", "three", "one"});
  EXPECT_EQ(operations("slice"), "slice");
  EXPECT_EQ(operation<SliceOp>("slice").first, 1);
  EXPECT_EQ(read("slice").graph.logits_shape(), (Shape{6, 8, 2}));
  add("Slice", "last", {"map", list("from", {-3}), list("to", {INT32_MAX}), list("columns", {-1})});
  EXPECT_EQ(operations("last"), "transpose slice");
  EXPECT_EQ(read("last").graph.logits_shape(), (Shape{4, 6, 3}));
  add("Slice", "rows", {"map", "one", "three", "two"});
  EXPECT_EQ(
      refusal("rows"),
      "Slice in node rows over axis 2 of [N, 4, 6, 8]; expected the channels or the last axis");
  NodeProto& split = add("Split", "first", {"map", list("sizes", {1, 3})});
  split.add_output("second");
  set(split, "axis", 1);
  add("Concat", "both", {"second", "first"});
  set(*model_.message.mutable_graph()->mutable_node()->rbegin(), "axis", 1);
  EXPECT_EQ(operations("both"), "slice slice concat");
  NodeProto& few = add("Split", "few", {"map", list("few_sizes", {1, 1})});
  few.add_output("fewer");
  set(few, "axis", 1);
  EXPECT_EQ(refusal("few"), "Split in node few by these sizes");
  // A part that no node reads is no node.
  EXPECT_EQ(operations("first"), "slice");
  EXPECT_EQ(operations("second"), "slice");
  EXPECT_EQ(operation<SliceOp>("second").first, 1);
  // x.chunk(2, 1) of PyTorch.
  model_.list("size", {2}).clear_dims();
  model_.list("index", {1}).clear_dims();
  set(add("SplitToSequence", "parts", {"map", "size"}), "axis", 1);
  add("SequenceAt", "chunk", {"parts", "index"});
  EXPECT_EQ(operation<SliceOp>("chunk").first, 2);
  model_.list("beyond", {2}).clear_dims();
  add("SequenceAt", "none", {"parts", "beyond"});
  EXPECT_EQ(refusal("none"), "Part in node none of part 2 of 2 along axis 1 of [N, 4, 6, 8]");
  add("SequenceAt", "odd", {"parts", "index"}).set_domain("com.acme");
  EXPECT_TRUE(contains(refusal("odd"), "com.acme::SequenceAt in node odd"));
}

// `export --onnx` writes these over axis 1 behind a Transpose, too.
TEST_F(AnOnnxMap, HasItsChannelsLastInMemoryBehindATranspose) {
  set_list(add("Transpose", "turned", {"map"}), "perm", {0, 2, 1, 3});  // [N, 6, 4, 8]
  list("one", {1});
  add("Slice", "slice", {"turned", "one", list("three", {3}), "one"});
  EXPECT_EQ(operations("slice"), "transpose transpose transpose slice");
  EXPECT_EQ(read("slice").graph.logits_shape(), (Shape{4, 8, 2}));
  set(add("Softmax", "softmax", {"turned"}), "axis", 1);
  EXPECT_EQ(operations("softmax"), "transpose transpose transpose softmax");
  set(add("Concat", "both", {"turned", "turned"}), "axis", 1);
  EXPECT_EQ(read("both").graph.logits_shape(), (Shape{4, 8, 12}));
  set(add("Concat", "rows", {"turned", "turned"}), "axis", 2);
  EXPECT_EQ(
      refusal("rows"),
      "Concat in node rows over axis 2 of [N, 6, 4, 8]; expected the channels or the last axis");
}

TEST_F(AnOnnxMap, HasNoAxesThatItDoesNotHave) {
  add("Transpose", "reversed", {"map"});
  EXPECT_EQ(refusal("reversed"),
            "Transpose in node reversed of [N, 4, 6, 8] to the order 3, 2, 1, 0");
  add("GlobalAveragePool", "mean", {"map"});
  add("Squeeze", "ninth", {"mean", list("nine", {9})});
  EXPECT_EQ(refusal("ninth"), "Squeeze in node ninth of axis 9 of [N, 4, 1, 1]");
  add("Flatten", "vector", {"mean"});
  add("Unsqueeze", "twice", {"vector", list("ones", {1, 1})});
  EXPECT_EQ(refusal("twice"), "Unsqueeze in node twice with an axis twice");
  model_.weights("fc.weight", {4, 1});
  add("MatMul", "fc", {"vector", "fc.weight"});
  add("Squeeze", "number", {"fc", list("one", {1})});
  EXPECT_EQ(refusal("number"),
            "Squeeze in node number of [N, 1] to [N]; expected that vectors stay [N, F]");
  add("Reshape", "view", {"fc", list("samples", {-1})});
  EXPECT_EQ(refusal("view"),
            "Reshape in node view of [N, 1] to [N]; expected that vectors stay [N, F]");
}

TEST_F(AnOnnxMap, IsMultipliedByAnotherAsMatrices) {
  set_list(add("Transpose", "turned", {"map"}), "perm", {0, 1, 3, 2});
  add("MatMul", "product", {"map", "turned"});
  EXPECT_EQ(operations("product"), "transpose transpose transpose matmul");
  EXPECT_EQ(read("product").graph.logits_shape(), (Shape{4, 6, 6}));
  add("MatMul", "unfit", {"map", "map"});
  EXPECT_TRUE(contains(refusal("unfit"),
                       "MatMul in node unfit (found [4, 6, 8] and [4, 6, 8]; expected [B, M, K]"));
  add("Flatten", "vector", {"map"});
  add("MatMul", "vectors", {"vector", "vector"});
  EXPECT_EQ(refusal("vectors"),
            "MatMul in node vectors of [N, 192] and [N, 192]; expected [N, B, M, K] and [N, B, K, "
            "L], or without B");
}

}  // namespace
}  // namespace syncopate
