// Operators of ONNX that enlarge maps, and Pad: the nodes that they become, and what is refused.
// onnx_peer.py compares their numbers with PyTorch and Keras.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/deploy/onnx/onnx_map_case.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

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
      EXPECT_TRUE(contains(refusal("up"), "Resize in node up with")) << what;
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
            "Resize in node uneven by 1, 1, 2, 3; expected one whole number for H and W");
  add("Resize", "half", {"map", "", floats("halves", {1, 1, 0.5, 0.5})});
  EXPECT_EQ(refusal("half"),
            "Resize in node half by 1, 1, 0.5, 0.5; expected one whole number for H and W");
  add("Resize", "open", {"map"});
  EXPECT_EQ(refusal("open"), "Resize in node open whose scales or sizes are not constant");
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
  EXPECT_EQ(
      refusal("twice"),
      "Relu in node end of a map with repeated rows; expected its columns to be repeated, too");
  add("Tile", "thrice", {"column", list("three", {1, 1, 1, 3, 1})});
  add("Reshape", "uneven", {"thrice", list("to_uneven", {-1, 12, 24, 4})});
  EXPECT_EQ(refusal("uneven"),
            "Repeat in node thrice that repeats axis 2 of [N, 12, 8, 4] 3 times; expected rows, "
            "then columns, equally often");
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
  set(own, "count_include_pad", 1);
  EXPECT_TRUE(contains(refusal("own"), "a window of 1 with padding 1"));
  // A maximum of values below 0 would be that of the zeros.
  add("Pad", "of_map", {"map", "ones"});
  EXPECT_EQ(
      refusal(pool("MaxPool", "of_map")),
      "MaxPool in node MaxPool_of_of_map of a map with a Pad of zeros; expected an activation "
      "such as Relu before");
  add("Tanh", "tanh", {"of_map"});
  EXPECT_EQ(
      refusal("tanh"),
      "Tanh in node tanh of a map with a Pad; expected a convolution or a pool behind the Pad");
  number("seven", 7.0F);
  add("Pad", "sevens", {"map", "ones", "seven"});
  EXPECT_EQ(refusal("sevens"), "Pad in node sevens with another number than 0");
  add("Pad", "channels", {"map", list("of_channels", {0, 1, 0, 0, 0, 0, 0, 0})});
  EXPECT_TRUE(contains(refusal("channels"), "expected zeros around H and W"));
  set(add("Pad", "mirrored", {"map", "ones"}), "mode", std::string("reflect"));
  EXPECT_EQ(refusal("mirrored"), "Pad in node mirrored with the mode reflect");
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
  set(add("Concat", "all", {"pads", "rest"}), "axis", 0);
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
  // The same pairs, reversed already, in a stored tensor.
  TensorProto& stored = model_.list("stored", {0, 0, 0, 0, 3, 4, 1, 2});
  stored.clear_dims();
  stored.add_dims(4);
  stored.add_dims(2);
  add("Transpose", "of_stored", {"stored"});
  add("Slice", "all_rows", {"of_stored", "zero", "four", "zero"});
  add("Reshape", "stored_pads", {"all_rows", "flat"});
  add("Pad", "padded2", {"map", "stored_pads"});
  add("Conv", "last_conv", {"padded2", "next.weight"});
  EXPECT_EQ(std::get<Conv2dOp>(read("last_conv").graph.nodes[2].operation).pad,
            Padding(3, 1, 4, 2));
}

}  // namespace
}  // namespace syncopate
