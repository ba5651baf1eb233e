// Operators of ONNX that enlarge, reshape and multiply maps: the nodes that they become, and what
// is refused. onnx_peer.py compares their numbers with PyTorch and Keras.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"
#include "tests/deploy/onnx/onnx_model.h"
#include "tests/worker/temporary_folder.h"

namespace syncopate {
namespace {

using Sides = std::vector<std::int64_t>;

// A map [N, 4, 6, 8] of a convolution, and a ReLU behind what a test makes of it.
class AnOnnxMap : public testing::Test {
 protected:
  AnOnnxMap() : model_({0, 3, 6, 8}) {
    model_.weights("conv.weight", {4, 3, 1, 1});
    model_.node("Conv", "map", {"x", "conv.weight"});
  }

  NodeProto& add(const std::string& op, const std::string& name,
                 const std::vector<std::string>& inputs) {
    return model_.node(op, name, inputs);
  }
  std::string floats(const std::string& name, const std::vector<float>& values) {
    TensorProto& list = model_.weights(name, {static_cast<std::int64_t>(values.size())});
    list.clear_float_data();
    for (const float value : values) list.add_float_data(value);
    return name;
  }
  std::string list(const std::string& name, const Sides& values) {
    model_.list(name, values);
    return name;
  }
  std::string number(const std::string& name, float value) {
    model_.number(name, value);
    return name;
  }

  // Returns the network that ends with the ReLU of this value.
  OnnxNetwork read(const std::string& value) {
    OnnxModel model = model_;
    model.node("Relu", "end", {value});
    model.output("end");
    model.save(folder_.path() / "net.onnx");
    return read_onnx_network(folder_.path() / "net.onnx");
  }
  // Returns the operations between the convolution and the ReLU, such as "upsample2d".
  std::string operations(const std::string& value) {
    const OnnxNetwork network = read(value);
    std::string text;
    for (std::size_t i = 2; i + 2 < network.graph.nodes.size(); ++i) {
      text += (i > 2 ? " " : "") + std::string(name(network.graph.nodes[i].operation));
    }
    return text;
  }
  // Returns what is said of the operator that has no counterpart.
  std::string refusal(const std::string& value) {
    try {
      (void)read(value);
    } catch (const UsageError& error) {
      const std::string what = error.what();
      const std::string start = "no counterpart here: ";
      const std::size_t begin = what.find(start);
      if (begin == std::string::npos) return what;
      const std::size_t end = what.find("; `syncopate convert");
      return what.substr(begin + start.size(), end - begin - start.size());
    }
    return "";
  }
  template <typename Op>
  Op operation(const std::string& value) {
    const OnnxNetwork network = read(value);
    for (const Node& node : network.graph.nodes) {
      if (const Op* const op = std::get_if<Op>(&node.operation)) return *op;
    }
    throw InternalError("no such node");
  }

  OnnxModel model_;
  TemporaryFolder folder_;
};

TEST_F(AnOnnxMap, IsEnlargedByResizesThatRepeatPixelsOrReadBetweenThem) {
  struct Case {
    std::string mode, place, rounding;
    float scale;
    bool is_taken;
  };
  const Case cases[] = {{"nearest", "asymmetric", "floor", 2, true},
                        {"nearest", "asymmetric", "floor", 3, true},
                        {"nearest", "asymmetric", "round_prefer_floor", 2, true},
                        {"nearest", "asymmetric", "round_prefer_floor", 3, false},
                        {"nearest", "asymmetric", "ceil", 2, false},
                        {"nearest", "half_pixel", "round_prefer_floor", 2, true},
                        {"nearest", "half_pixel", "round_prefer_ceil", 5, true},
                        {"nearest", "half_pixel", "floor", 2, false},
                        {"nearest", "tf_half_pixel_for_nn", "floor", 4, true},
                        {"nearest", "align_corners", "floor", 2, false},
                        {"linear", "half_pixel", "floor", 2, true},
                        {"linear", "pytorch_half_pixel", "floor", 3, true},
                        {"linear", "align_corners", "floor", 2, false},
                        {"linear", "asymmetric", "floor", 2, false},
                        {"cubic", "half_pixel", "floor", 2, false}};
  for (const Case& each : cases) {
    model_ = OnnxModel({0, 3, 6, 8});
    model_.weights("conv.weight", {4, 3, 1, 1});
    add("Conv", "map", {"x", "conv.weight"});
    NodeProto& resize =
        add("Resize", "up", {"map", "", floats("scales", {1, 1, each.scale, each.scale})});
    set(resize, "mode", each.mode);
    set(resize, "coordinate_transformation_mode", each.place);
    set(resize, "nearest_mode", each.rounding);
    const std::string what = each.mode + " " + each.place + " " + each.rounding;
    if (!each.is_taken) {
      EXPECT_NE(refusal("up").find("Resize with"), std::string::npos) << what;
      continue;
    }
    const auto op = operation<UpsampleOp>("up");
    EXPECT_EQ(op.scale, static_cast<int>(each.scale)) << what;
    EXPECT_EQ(op.mode == Interpolation::kBilinear, each.mode == "linear") << what;
  }
}

TEST_F(AnOnnxMap, MayBeResizedToSizesOrAlongNamedAxes) {
  add("Resize", "to", {"map", "", "", list("sizes", {1, 4, 18, 24})});
  EXPECT_EQ(operation<UpsampleOp>("to").scale, 3);
  NodeProto& named = add("Resize", "named", {"map", "", floats("two", {2, 2})});
  set_list(named, "axes", {-1, -2});
  EXPECT_EQ(operation<UpsampleOp>("named").scale, 2);
  add("Resize", "same", {"map", "", floats("ones", {1, 1, 1, 1})});
  EXPECT_EQ(operations("same"), "");
}

// As a decoder of PyTorch begins: Linear, view(-1, 4, 6, 8), interpolate(scale_factor=2).
TEST_F(AnOnnxMap, OfAReshapedVectorIsEnlargedAlongItsLastAxes) {
  model_ = OnnxModel({0, 192});
  add("Reshape", "map", {"x", list("sides", {-1, 4, 6, 8})});
  add("Resize", "up", {"map", "", floats("scales", {1, 1, 2, 2})});
  model_.weights("conv.weight", {4, 4, 1, 1});
  add("Conv", "conv", {"up", "conv.weight"});
  // The first nodes are input and reshape.
  EXPECT_EQ(operations("conv"), "transpose upsample2d conv2d");
  EXPECT_EQ(operation<TransposeOp>("conv").order, (std::array<int, 3>{1, 2, 0}));
  EXPECT_EQ(read("conv").graph.logits_shape(), (Shape{12, 16, 4}));
}

TEST_F(AnOnnxMap, IsNotResizedByOtherNumbers) {
  add("Resize", "uneven", {"map", "", floats("uneven_scales", {1, 1, 2, 3})});
  EXPECT_EQ(refusal("uneven"),
            "Resize by 1, 1, 2, 3; expected one whole number for H and W in node uneven");
  add("Resize", "half", {"map", "", floats("halves", {1, 1, 0.5, 0.5})});
  EXPECT_EQ(refusal("half"),
            "Resize by 1, 1, 0.5, 0.5; expected one whole number for H and W in node half");
  add("Resize", "open", {"map"});
  EXPECT_EQ(refusal("open"), "Resize whose scales or sizes are not constant in node open");
}

// As Keras writes UpSampling2D: [N, H, W, C] to [N, H, 1, W, C], [N, H, 2, W, C], [N, 2 * H, W, C].
TEST_F(AnOnnxMap, IsEnlargedByRepeatedRowsAndColumns) {
  list("third", {3});
  add("Unsqueeze", "row", {"map", "third"});
  add("Tile", "rows", {"row", list("counts", {1, 1, 1, 2, 1})});
  set_list(add("Transpose", "last", {"rows"}), "perm", {0, 2, 3, 4, 1});
  add("Reshape", "twice", {"last", list("to_rows", {-1, 12, 8, 4})});
  add("Unsqueeze", "column", {"twice", "third"});
  add("Tile", "columns", {"column", "counts"});
  add("Reshape", "both", {"columns", list("to_columns", {-1, 12, 16, 4})});
  set_list(add("Transpose", "first", {"both"}), "perm", {0, 3, 1, 2});
  EXPECT_EQ(operations("first"), "upsample2d");
  EXPECT_EQ(operation<UpsampleOp>("first").scale, 2);
  EXPECT_EQ(refusal("twice"),
            "Relu of a map with repeated rows; expected its columns to be repeated, too in node "
            "end");
  add("Tile", "thrice", {"column", list("three", {1, 1, 1, 3, 1})});
  add("Reshape", "uneven", {"thrice", list("to_uneven", {-1, 12, 24, 4})});
  EXPECT_EQ(refusal("uneven"),
            "Repeat that repeats axis 2 of [N, 12, 8, 4] 3 times; expected rows, then columns, "
            "equally often in node thrice");
}

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
            "Add of [N, 4, 6, 8] and [N, 4, 1, 1]; expected equal shapes in node sum");
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
  EXPECT_EQ(refusal("quotient"), "Div by a value in node quotient");
  number("zero", 0.0F);
  add("Div", "infinite", {"map", "zero"});
  EXPECT_EQ(refusal("infinite"), "Div by 0 in node infinite");
  floats("several", {1, 2});
  add("Mul", "by_several", {"map", "several"});
  EXPECT_EQ(refusal("by_several"), "Mul by a constant that is no number in node by_several");
  add("Sub", "difference", {"map", "map"});
  EXPECT_EQ(operations("difference"), "linear add");
}

// F.scaled_dot_product_attention of PyTorch: the square root of a side of a shape.
TEST_F(AnOnnxMap, IsDividedByTheSquareRootOfASide) {
  add("Shape", "shape", {"map"});
  add("Slice", "side", {"shape", list("from", {1}), list("to", {2})});
  set(add("Cast", "channels", {"side"}), "to", std::int64_t{1});
  add("Sqrt", "root", {"channels"});
  add("Div", "scaled", {"map", "root"});
  EXPECT_EQ(operation<ActivationOp>("scaled").factor, 0.5F);
}

// ZeroPad2d(left 1, right 2, top 3, bottom 4) of PyTorch lists the pads from the last axis on: it
// reverses the rows of [[1, 2], [3, 4], [0, 0], [0, 0]] and exchanges the axes.
TEST_F(AnOnnxMap, HasThePadsThatPyTorchComputes) {
  list("pads", {1, 2, 3, 4});
  list("four", {4});
  add("ConstantOfShape", "rest", {"four"});
  auto& zero = *model_.message.mutable_graph()->mutable_node()->rbegin()->add_attribute();
  zero.set_name("value");
  zero.set_type(4);
  zero.mutable_t()->set_data_type(7);
  zero.mutable_t()->add_dims(1);
  zero.mutable_t()->add_int64_data(0);
  set(add("Concat", "all", {"pads", "rest"}), "axis", std::int64_t{0});
  add("Reshape", "pairs", {"all", list("by_two", {-1, 2})});
  add("Slice", "reversed",
      {"pairs", list("last", {-1}), list("before", {std::numeric_limits<std::int64_t>::min()}),
       list("zero", {0}), list("back", {-1})});
  set_list(add("Transpose", "columns", {"reversed"}), "perm", {1, 0});
  add("Reshape", "in_order", {"columns", list("flat", {-1})});
  add("Pad", "padded", {"map", "in_order"});
  model_.weights("next.weight", {3, 4, 7, 7});
  add("Conv", "next", {"padded", "next.weight"});
  EXPECT_EQ(std::get<Conv2dOp>(read("next").graph.nodes[2].operation).pad, Padding(3, 1, 4, 2));
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
  EXPECT_NE(refusal("inverted").find("expected the lower one first"), std::string::npos);
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
  set(add("ReduceMean", "mean", {"rows", "first"}), "keepdims", std::int64_t{0});
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
            "Transpose of [N, 4, 6, 8] to the order 1, 0, 2, 3 in node samples");
  add("Flatten", "vector", {"map"});
  add("Reshape", "late", {"vector", list("late_sides", {-1, 8, 24})});
  EXPECT_EQ(operations("late"), "transpose reshape reshape");
  EXPECT_EQ(operation<TransposeOp>("late").order, (std::array<int, 3>{2, 0, 1}));
}

TEST_F(AnOnnxMap, HasASoftmaxAndMeansOverItsAxes) {
  set(add("Softmax", "channels", {"map"}), "axis", std::int64_t{1});
  EXPECT_EQ(operations("channels"), "softmax");
  add("Softmax", "columns", {"map"});
  EXPECT_EQ(operations("columns"), "transpose softmax");
  set(add("Softmax", "rows", {"map"}), "axis", std::int64_t{2});
  EXPECT_EQ(refusal("rows"),
            "Softmax over axis 2 of [N, 4, 6, 8]; expected the channels or the last axis in node "
            "rows");
  list("one", {1});
  add("ReduceMean", "mean", {"map", "one"});
  EXPECT_EQ(operations("mean"), "transpose reduce_mean");
  EXPECT_EQ(read("mean").graph.logits_shape(), (Shape{1, 6, 8}));
  set(add("ReduceMean", "dropped", {"map", list("two", {1, -1})}), "keepdims", std::int64_t{0});
  EXPECT_EQ(operations("dropped"), "transpose reduce_mean flatten");
  EXPECT_EQ(read("dropped").graph.logits_shape(), Shape{6});
  add("ReduceMean", "samples", {"map", list("zero", {0})});
  EXPECT_EQ(refusal("samples"),
            "ReduceMean over the axes 0 of [N, 4, 6, 8]; expected axes of a map in node samples");
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
  EXPECT_EQ(refusal("rows"),
            "Slice over axis 2 of [N, 4, 6, 8]; expected the channels or the last axis in node "
            "rows");
  NodeProto& split = add("Split", "first", {"map", list("sizes", {1, 3})});
  split.add_output("second");
  set(split, "axis", std::int64_t{1});
  add("Concat", "both", {"second", "first"});
  set(*model_.message.mutable_graph()->mutable_node()->rbegin(), "axis", std::int64_t{1});
  EXPECT_EQ(operations("both"), "slice slice concat");
  // A part that no node reads is no node.
  EXPECT_EQ(operations("first"), "slice");
  EXPECT_EQ(operations("second"), "slice");
  EXPECT_EQ(operation<SliceOp>("second").first, 1);
  // x.chunk(2, 1) of PyTorch.
  model_.list("size", {2}).clear_dims();
  model_.list("index", {1}).clear_dims();
  set(add("SplitToSequence", "parts", {"map", "size"}), "axis", std::int64_t{1});
  add("SequenceAt", "chunk", {"parts", "index"});
  EXPECT_EQ(operation<SliceOp>("chunk").first, 2);
  model_.list("beyond", {2}).clear_dims();
  add("SequenceAt", "none", {"parts", "beyond"});
  EXPECT_EQ(refusal("none"), "Part of part 2 of 2 along axis 1 of [N, 4, 6, 8] in node none");
  add("SequenceAt", "odd", {"parts", "index"}).set_domain("com.acme");
  EXPECT_NE(refusal("odd").find("com.acme::SequenceAt in node odd"), std::string::npos);
}

TEST_F(AnOnnxMap, IsMultipliedByAnotherAsMatrices) {
  set_list(add("Transpose", "turned", {"map"}), "perm", {0, 1, 3, 2});
  add("MatMul", "product", {"map", "turned"});
  EXPECT_EQ(operations("product"), "transpose transpose transpose matmul");
  EXPECT_EQ(read("product").graph.logits_shape(), (Shape{4, 6, 6}));
  add("MatMul", "unfit", {"map", "map"});
  EXPECT_NE(refusal("unfit").find("MatMul (found [4, 6, 8] and [4, 6, 8]; expected [B, M, K]"),
            std::string::npos);
  add("Flatten", "vector", {"map"});
  add("MatMul", "vectors", {"vector", "vector"});
  EXPECT_EQ(refusal("vectors"),
            "MatMul of [N, 192] and [N, 192]; expected [N, B, M, K] and [N, B, K, L], or without B "
            "in node vectors");
}

TEST_F(AnOnnxMap, GivesItsPadToTheLayerBehindIt) {
  add("Pad", "padded", {"map", list("pads", {0, 0, 1, 0, 0, 0, 0, 2})});
  model_.weights("next.weight", {3, 4, 3, 3});
  NodeProto& conv = add("Conv", "next", {"padded", "next.weight"});
  set_list(conv, "pads", {0, 1, 0, 0});
  EXPECT_EQ(std::get<Conv2dOp>(read("next").graph.nodes[2].operation).pad, Padding(1, 1, 0, 2));
  add("Relu", "relu", {"map"});
  add("Pad", "around", {"relu", list("ones", {0, 0, 1, 1, 0, 0, 1, 1})});
  const auto pool = [&](const std::string& op, const std::string& input) {
    const std::string name = op + "_of_" + input;
    NodeProto& node = add(op, name, {input});
    set_list(node, "kernel_shape", {3, 3});
    return name;
  };
  EXPECT_EQ(operation<MaxPoolOp>(pool("MaxPool", "around")).pad, 1);
  EXPECT_EQ(operation<AveragePoolOp>(pool("AveragePool", "around")).pad, 1);
  // A mean of one pixel leaves the zeros for the layer behind it.
  set_list(add("AveragePool", "pixels", {"around"}), "kernel_shape", {1, 1});
  add("Conv", "behind", {"pixels", "next.weight"});
  EXPECT_EQ(std::get<Conv2dOp>(read("behind").graph.nodes[3].operation).pad, Padding(1));
  NodeProto& own = add("AveragePool", "own", {"map"});
  set_list(own, "kernel_shape", {1, 1});
  set_list(own, "pads", {1, 1, 1, 1});
  set(own, "count_include_pad", std::int64_t{1});
  EXPECT_NE(refusal("own").find("a window of 1 with padding 1"), std::string::npos);
  // A maximum of values below 0 would be that of the zeros.
  add("Pad", "of_map", {"map", "ones"});
  EXPECT_EQ(refusal(pool("MaxPool", "of_map")),
            "MaxPool of a map with a Pad of zeros; expected an activation such as Relu before in "
            "node MaxPool_of_of_map");
  add("Tanh", "tanh", {"of_map"});
  EXPECT_EQ(refusal("tanh"),
            "Tanh of a map with a Pad; expected a convolution or a pool behind the Pad in node "
            "tanh");
  number("seven", 7.0F);
  add("Pad", "sevens", {"map", "ones", "seven"});
  EXPECT_EQ(refusal("sevens"), "Pad with another number than 0 in node sevens");
  add("Pad", "channels", {"map", list("of_channels", {0, 1, 0, 0, 0, 0, 0, 0})});
  EXPECT_NE(refusal("channels").find("expected zeros around H and W"), std::string::npos);
  set(add("Pad", "mirrored", {"map", "ones"}), "mode", std::string("reflect"));
  EXPECT_EQ(refusal("mirrored"), "Pad with the mode reflect in node mirrored");
}

}  // namespace
}  // namespace syncopate
