// What the reader says of operators that have no counterpart: the cause, without its consequences.
#include <gtest/gtest.h>

#include "tests/deploy/onnx/onnx_network_case.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

TEST_F(AnOnnxNetwork, NamesAllOperatorsThatHaveNoCounterpartAtOnce) {
  OnnxModel model = map_of_four();
  model.node("LRN", "up1", {"map"});
  model.node("LRN", "up2", {"up1"});
  model.weights("w", {4, 4, 3, 3});
  set_list(model.node("Conv", "wide", {"up2", "w"}), "dilations", {2, 2});
  model.last("FusedConv", "fused", {"wide"}).set_domain("com.microsoft");
  EXPECT_EQ(error_of(model),
            (folder_.path() / "net.onnx").string() +
                ": no counterpart here: LRN in nodes up1, up2; Conv in node wide with dilations "
                "of 2; com.microsoft::FusedConv in node fused; `syncopate convert --help` lists "
                "what is taken");
  // What is behind a known node that reads a missing one is not known.
  model.node("Relu", "relu", {"fused"});
  model.message.mutable_graph()->mutable_output(0)->set_name("relu");
  EXPECT_TRUE(
      contains(error_of(model), "lists what is taken, and nodes behind these were not checked"));
}

// x.view(x.size(0), -1) behind a node that is refused.
TEST_F(AnOnnxNetwork, NamesNoOperatorsOfShapesBehindAMissingNode) {
  OnnxModel model = map_of_four();
  model.node("LRN", "norm", {"map"});
  model.node("Shape", "shape", {"norm"});
  model.list("first", {0});
  model.node("Gather", "samples", {"shape", "first"});
  model.node("Mod", "rest", {"samples", "first"});
  set(model.node("Concat", "target", {"samples", "rest"}), "axis", 0);
  model.last("Reshape", "end", {"norm", "target"});
  EXPECT_TRUE(contains(error_of(model), "no counterpart here: LRN in node norm; `syncopate"));
}

// Another domain's Sigmoid may compute anything.
TEST_F(AnOnnxNetwork, TakesNoOperatorOfAnotherDomainForOneOfOnnx) {
  const auto set_domain = [](OnnxModel& model, const std::string& name) {
    for (NodeProto& node : *model.message.mutable_graph()->mutable_node()) {
      if (node.name() == name) node.set_domain("com.acme");
    }
  };
  OnnxModel gated = map_of_four();
  gated.node("Sigmoid", "gate", {"map"});
  gated.last("Mul", "gated", {"map", "gate"});
  EXPECT_EQ(operations(gated), "conv2d silu");
  OnnxModel product = gated;
  set_domain(gated, "gate");
  EXPECT_TRUE(contains(error_of(gated), "com.acme::Sigmoid in node gate"));
  set_domain(product, "gated");
  EXPECT_TRUE(contains(error_of(product), "com.acme::Mul in node gated"));
  OnnxModel biased = map_of_four();
  biased.weights("bias", {1, 4, 1, 1});
  biased.last("Add", "biased", {"map", "bias"});
  EXPECT_EQ(error_of(biased), "");
  set_domain(biased, "biased");
  EXPECT_TRUE(contains(error_of(biased), "com.acme::Add in node biased"));
  OnnxModel last = map_of_four();
  last.node("Softmax", "softmax", {"map"});
  last.last("Identity", "end", {"softmax"});
  set_domain(last, "end");
  EXPECT_TRUE(contains(error_of(last), "com.acme::Identity in node end"));
}

// Silu, Part and Repeat are names that the reader gives nodes.
TEST_F(AnOnnxNetwork, TakesNoOperatorsThatOnnxDoesNotHave) {
  for (const char* const op : {"Silu", "Part", "Repeat"}) {
    OnnxModel model = map_of_four();
    model.last(op, "odd", {"map"});
    EXPECT_TRUE(
        contains(error_of(model), std::string("no counterpart here: ") + op + " in node odd"));
  }
}

// PyTorch writes RandomUniformLike for stochastic depth, Dropout2d and a dropout with inplace=True.
TEST_F(AnOnnxNetwork, NamesTheRandomLayersThatMayBeMeant) {
  for (const char* const op : {"RandomUniformLike", "RandomUniform", "Bernoulli"}) {
    OnnxModel model({0, 4});
    model.node(op, "noise", {"x"});
    model.last("Mul", "fc", {"x", "noise"});
    for (const char* const text :
         {" in node noise of a random layer", "inplace=False", "stochastic depth", "Dropout2d"}) {
      EXPECT_TRUE(contains(error_of(model), text)) << op << ": " << error_of(model);
    }
  }
}

TEST_F(AnOnnxNetwork, NamesAnAdaptivePoolInPlaceOfItsNodes) {
  OnnxModel model = map_of_four();
  const std::vector<std::vector<std::string>> values = {
      {"namespace", ": net.Sequential/1: torch.nn.modules.pooling.AdaptiveAvgPool2d/index: aten"},
      {"pkg.torch.onnx.stack_trace", "File net.py, in forward: F.adaptive_avg_pool2d(x, 7)"}};
  std::string x = "map";
  for (const char* const op : {"Floor", "GatherND"}) {
    const std::vector<std::string>& value = values[x == "map" ? 0 : 1];
    set_metadata(model.node(op, std::string(op) + "1", {x}), value[0], value[1]);
    x = std::string(op) + "1";
  }
  model.output(x);
  EXPECT_TRUE(contains(error_of(model),
                       "no counterpart here: an adaptive pool in nodes Floor1, GatherND1 to "
                       "a size that does not divide that of the map;"));
}

TEST_F(AnOnnxNetwork, NamesItsInputsIfThereAreSeveral) {
  OnnxModel model = small_onnx_network();
  model.message.mutable_graph()->add_input()->set_name("net/normalization_1/Sub/y:0");
  EXPECT_TRUE(contains(error_of(model),
                       "2 inputs, x, net/normalization_1/Sub/y:0 (numbers of a "
                       "Normalization layer of Keras: export the model without it"));
}

// As PyTorch writes a dropout with inplace=True.
TEST_F(AnOnnxNetwork, NamesARandomLayerWithoutWhatItDoesWithItsNumbers) {
  OnnxModel model({0, 4});
  model.node("RandomUniformLike", "noise", {"x"});
  model.number("rate", 0.5F);
  model.node("Less", "is_kept", {"noise", "rate"});
  model.node("CastLike", "mask", {"is_kept", "x"});
  model.last("Mul", "dropped", {"x", "mask"});
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
  model.last("MatMul", "attention", {"softmax", "v"});
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
