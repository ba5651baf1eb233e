// The weights and biases of norms: those that a program trains, those that it does not have, and
// norms that an exporter folded into the layer in front.
#include "tests/deploy/onnx/onnx_origins_case.h"

namespace syncopate {
namespace {

// BatchNorm2d(affine=False), LayerNorm(elementwise_affine=False) and LayerNorm(bias=False), as both
// exporters write them.
TEST_F(AnOnnxTensor, IsNoWeightOfANormThatHasNone) {
  const auto filled = [](OnnxModel& model, const std::string& name, float value) {
    model.number(name + ".value", value);
    model.list(name + ".shape", {4});
    model.node("Expand", name, {name + ".value", name + ".shape"});
  };
  for (const bool has_bias : {false, true}) {
    OnnxModel model = hidden("pytorch");
    filled(model, "ones", 1.0F);
    std::vector<std::string> inputs = {"hidden", "ones"};
    if (has_bias) filled(model, "zeros", 0.0F);
    if (has_bias) inputs.emplace_back("zeros");
    model.node("LayerNormalization", "norm", inputs);
    end(model, "norm", "head.weight");
    expect_refusal(model, "LayerNormalization in node norm without a trained weight (affine=False");
  }
  OnnxModel half = hidden("pytorch");
  half.weights("norm.weight", {4});
  half.node("LayerNormalization", "norm", {"hidden", "norm.weight"});
  end(half, "norm", "head.weight");
  OnnxModel older = half;
  expect_refusal(half, "LayerNormalization in node norm without a bias (bias=False)");
  filled(older, "zeros", 0.0F);
  auto& nodes = *older.message.mutable_graph()->mutable_node();
  nodes.Mutable(1)->add_input("zeros");
  expect_refusal(older, "LayerNormalization in node norm without a trained bias");

  OnnxModel maps = map_of_four();
  maps.message.set_producer_name("pytorch");
  filled(maps, "ones", 1.0F);
  filled(maps, "zeros", 0.0F);
  maps.weights("mean", {4});
  maps.weights("variance", {4});
  maps.last("BatchNormalization", "norm", {"map", "ones", "zeros", "mean", "variance"});
  expect_refusal(maps, "BatchNormalization in node norm without a trained weight");
  // Files of other programs may have their parameters as Constant nodes.
  maps.message.set_producer_name("other");
  EXPECT_EQ(operations(maps), "conv2d batch_norm");
  EXPECT_TRUE(contains(read(maps).notes.at(0), "may be a fixed number"));
}

// BatchNormalization(scale=False) and (center=False) of Keras.
TEST_F(AnOnnxTensor, OfANormOfKerasIsTrainedIfItIsAVariable) {
  const auto norm = [](const std::string& producer, const std::string& scale, float first,
                       float step) {
    OnnxModel model = map_of_four();
    model.message.set_producer_name(producer);
    TensorProto& weight = model.weights(scale, {4});
    for (int i = 0; i < 4; ++i) weight.set_float_data(i, first + static_cast<float>(i) * step);
    for (const char* const name : {"bn/ReadVariableOp:0", "mean", "variance"}) {
      model.weights(name, {4});
    }
    model.last("BatchNormalization", "bn",
               {"map", scale, "bn/ReadVariableOp:0", "mean", "variance"});
    return model;
  };
  EXPECT_TRUE(read(norm("tf2onnx", "bn/ReadVariableOp_1:0", 1.0F, 0.0F)).notes.empty());
  expect_refusal(norm("tf2onnx", "bn/Const:0", 1.0F, 0.0F),
                 "BatchNormalization in node bn without a trained weight");
  const std::string note = "norms whose weight or bias may be a fixed number in the program";
  for (const OnnxModel& model :
       {norm("tf2onnx", "bn/Const:0", 1.0F, 0.5F), norm("other", "scale", 1.0F, 0.0F)}) {
    ASSERT_EQ(read(model).notes.size(), 1U);
    EXPECT_EQ(read(model).notes[0].substr(0, note.size()), note);
  }
  EXPECT_TRUE(read(norm("other", "scale", 1.0F, 0.5F)).notes.empty());
  EXPECT_TRUE(read(norm("other", "bn.weight", 1.0F, 0.0F)).notes.empty());
}

TEST_F(AnOnnxTensor, OfAFoldedBatchNormIsNoted) {
  const std::string note = "the exporter folded the batch norms into 1 layer, such as ";
  OnnxModel keras = model_of("tf2onnx", {0, 3, 8, 8});
  keras.weights("net/conv2d/convolution/merged_input:0", {4, 3, 1, 1});
  keras.weights("net/batch_normalization_1/batchnorm/sub:0", {4});
  keras.last(
      "Conv", "Conv__36",
      {"x", "net/conv2d/convolution/merged_input:0", "net/batch_normalization_1/batchnorm/sub:0"});
  EXPECT_EQ(read(keras).notes.at(0).substr(0, note.size() + 8), note + "Conv__36");
  EXPECT_FALSE(contains(read(keras).notes.at(0), "PyTorch")) << "of no use for Keras";

  // One batch norm was folded, and one is left.
  OnnxModel partly = model_of("pytorch", {0, 3, 8, 8});
  partly.weights("onnx::Conv_25", {4, 3, 1, 1});
  partly.weights("onnx::Conv_26", {4});
  partly.node("Conv", "/0/Conv", {"x", "onnx::Conv_25", "onnx::Conv_26"});
  partly.batch_norm("bn", "/0/Conv", 4);
  partly.output("bn");
  EXPECT_EQ(read(partly).notes.at(0).substr(0, note.size() + 7), note + "/0/Conv");

  OnnxModel dense = hidden("pytorch");
  dense.message.mutable_graph()->mutable_node(0)->mutable_output(0)->assign("getitem");
  set_metadata(*dense.message.mutable_graph()->mutable_node(0), "pkg.onnxscript.rewriter.rule_name",
               "FuseBatchNormIntoGemm");
  end(dense, "getitem", "head.weight");
  EXPECT_EQ(read(dense).notes.at(0).substr(0, note.size() + 6), note + "hidden");
  // A file whose metadata was removed.
  dense.message.mutable_graph()->mutable_node(0)->clear_metadata_props();
  EXPECT_EQ(read(dense).notes.at(0).substr(0, note.size() + 6), note + "hidden");
}

TEST_F(AnOnnxTensor, OfALayerInABlockNamedAfterItsBatchNormIsNotNoted) {
  OnnxModel model({0, 3, 8, 8});
  model.message.set_producer_name("pytorch");
  model.weights("batchnorm_block.0.weight", {4, 3, 1, 1});
  set_metadata(model.node("Conv", "/batchnorm_block/0/Conv", {"x", "batchnorm_block.0.weight"}),
               "namespace",
               ": net.ConvBatchNormRelu/0: torch.nn.modules.conv.Conv2d/conv2d: aten.conv2d");
  model.batch_norm("bn", "/batchnorm_block/0/Conv", 4);
  model.output("bn");
  EXPECT_TRUE(read(model).notes.empty()) << read(model).notes.at(0);
}

}  // namespace
}  // namespace syncopate
