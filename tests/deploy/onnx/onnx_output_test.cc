// The last activation of a network in an ONNX file, which its loss contains.
#include <gtest/gtest.h>

#include "tests/deploy/onnx/onnx_network_case.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

TEST_F(AnOnnxNetwork, EndsWithASoftmaxOverTheClassesAlone) {
  const auto error_for = [&](std::int64_t axis) {
    OnnxModel model = map_of_four();
    set(model.last("Softmax", "softmax", {"map"}), "axis", axis);
    return error_of(model);
  };
  EXPECT_EQ(error_for(1), "");
  EXPECT_TRUE(contains(error_for(-1), "is over axis -1 of [N, 4, 8, 8]; expected the classes"));
}

// The loss contains the softmax, so the network must not end with one more.
TEST_F(AnOnnxNetwork, MayChangeItsShapeBehindTheLastActivation) {
  OnnxModel model = map_of_four(1, 1);
  set(model.node("Softmax", "softmax", {"map"}), "axis", 1);
  model.output("end");
  const OnnxModel without_end = model;
  model.node("Flatten", "end", {"softmax"});
  EXPECT_EQ(operations(model), "conv2d flatten");
  ASSERT_EQ(read(model).notes.size(), 1U);
  EXPECT_TRUE(contains(read(model).notes.front(), "the Softmax at the end"));
  model = without_end;
  model.list("sides", {2, 3});
  model.node("Squeeze", "end", {"softmax", "sides"});
  EXPECT_EQ(operations(model), "conv2d flatten");
  // x.view(x.size(0), -1) reads the shape.
  model = without_end;
  model.node("Shape", "shape", {"softmax"});
  model.list("first", {0});
  model.node("Gather", "samples", {"shape", "first"});
  model.list("rest", {-1});
  set(model.node("Concat", "target", {"samples", "rest"}), "axis", 0);
  model.node("Reshape", "end", {"softmax", "target"});
  EXPECT_EQ(operations(model), "conv2d flatten");
  model = map_of_four(1, 1);
  model.node("Sigmoid", "sigmoid", {"map"});
  model.last("Flatten", "end", {"sigmoid"});
  EXPECT_EQ(operations(model), "conv2d flatten");
  EXPECT_EQ(read(model).graph.loss().kind, LossKind::kBinaryCrossEntropy);
}

TEST_F(AnOnnxNetwork, HasNoOtherClassesBehindTheLastSoftmax) {
  OnnxModel model({0, 6});
  model.weights("fc.weight", {6, 4});
  model.node("MatMul", "fc", {"x", "fc.weight"});
  model.node("Softmax", "softmax", {"fc"});
  model.list("sides", {-1, 2, 2});
  model.last("Reshape", "pairs", {"softmax", "sides"});
  EXPECT_TRUE(contains(error_of(model),
                       "the Softmax at the end is over axis -1 of [N, 4], which becomes "
                       "[N, 2, 2] behind it"));
}

TEST_F(AnOnnxNetwork, HasTheLossThatItsLastActivationBelongsTo) {
  OnnxModel model({0, 6});
  model.weights("fc.weight", {6, 2});
  model.node("MatMul", "fc", {"x", "fc.weight"});
  model.last("Sigmoid", "share", {"fc"});
  const OnnxNetwork network = read(model);
  EXPECT_EQ(network.graph.loss().kind, LossKind::kBinaryCrossEntropy);
  EXPECT_EQ(operations(network), "dense");
}

}  // namespace
}  // namespace syncopate
