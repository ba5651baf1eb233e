// What the reader says of operators that have no counterpart: the cause, without its consequences.
#include <gtest/gtest.h>

#include "tests/deploy/onnx/onnx_network_case.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

// As PyTorch writes a dropout with inplace=True.
TEST_F(AnOnnxNetwork, NamesARandomLayerWithoutWhatItDoesWithItsNumbers) {
  OnnxModel model({0, 4});
  model.node("RandomUniformLike", "noise", {"x"});
  model.number("rate", 0.5F);
  model.node("Less", "is_kept", {"noise", "rate"});
  model.node("CastLike", "mask", {"is_kept", "x"});
  model.node("Mul", "dropped", {"x", "mask"});
  model.output("dropped");
  EXPECT_TRUE(lacks(error_of(model), "Less", "CastLike"));
}

// As both exporters of PyTorch write nn.MultiheadAttention.
TEST_F(AnOnnxNetwork, NamesAttentionInPlaceOfItsNodes) {
  OnnxModel model({0, 6, 4});
  model.message.set_producer_name("pytorch");
  model.weights("in.weight", {4, 12});
  model.weights("in.bias", {12});
  model.list("two", {2});
  set_list(model.node("Transpose", "turned", {"x"}), "perm", {1, 0, 2});
  model.node("MatMul", "product", {"turned", "in.weight"});
  model.node("Add", "in", {"in.bias", "product"});
  for (const char* const part : {"q", "k", "v"}) model.node("Gather", part, {"in", "two"});
  model.node("Shape", "shape", {"q"});
  model.node("CastLike", "size", {"shape", "q"});
  model.node("Sqrt", "root", {"size"});
  model.node("Div", "scaled", {"q", "root"});
  set_list(model.node("Transpose", "keys", {"k"}), "perm", {0, 2, 1});
  model.node("MatMul", "scores", {"scaled", "keys"});
  model.node("Softmax", "softmax", {"scores"});
  model.node("MatMul", "attention", {"softmax", "v"});
  model.output("attention");
  const std::string error = error_of(model);
  EXPECT_TRUE(contains(error, "no counterpart here: attention in nodes turned, ",
                       "expected a layer each for q, k and v"));
  for (const char* const consequence : {"CastLike in", "Sqrt in", "Gather in", "Transpose in"}) {
    EXPECT_FALSE(contains(error, consequence));
  }
  // A weight of it that is computed is its own cause.
  model.weights("mask", {4, 12});
  model.node("Mul", "masked", {"in.weight", "mask"});
  *model.message.mutable_graph()->mutable_node(1)->mutable_input(1) = "masked";
  EXPECT_TRUE(
      contains(error_of(model), "Mul in node masked of in.weight, mask, which may be trained"));
}

}  // namespace
}  // namespace syncopate
