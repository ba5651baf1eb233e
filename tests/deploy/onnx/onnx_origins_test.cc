// What PyTorch and Keras train is trained as it was, or refused by name; what they do not train is
// not trained. The files are as both exporters of PyTorch and tf2onnx write them.
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "tests/deploy/onnx/onnx_network_case.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

constexpr const char* kOperation = "pkg.torch.onnx.fx_node";

class AnOnnxTensor : public AnOnnxNetwork {
 protected:
  static OnnxModel model_of(const std::string& producer, const std::vector<std::int64_t>& input) {
    OnnxModel model(input);
    model.message.set_producer_name(producer);
    return model;
  }
  // The newer exporter of PyTorch lists what is trained, such as {"fc.weight", "PARAMETER"}.
  static void list(OnnxModel& model, const std::vector<std::pair<std::string, std::string>>& all) {
    std::string text = "\n# inputs\n";
    for (const auto& [name, kind] : all) {
      text += program_name(name, kind) + ": " + kind + " target='" + name + "'\n";
    }
    auto& entry = *model.message.mutable_graph()->add_metadata_props();
    entry.set_key("pkg.torch.export.ExportedProgram.graph_signature");
    entry.set_value(text + "x: USER_INPUT\n");
  }
  static std::string program_name(std::string name, const std::string& kind) {
    for (char& letter : name) letter = letter == '.' ? '_' : letter;
    return (kind == "PARAMETER" ? "p_" : "b_") + name;
  }
  static NodeProto& made_by(NodeProto& node, const std::string& target,
                            const std::string& arguments) {
    auto& entry = *node.add_metadata_props();
    entry.set_key(kOperation);
    entry.set_value("%y : [num_users=1] = call_function[target=torch.ops.aten." + target +
                    "](args = (" + arguments + "), kwargs = {})");
    return node;
  }
  // A dense layer of 4 features, and one of 3 behind the nodes of a test.
  static OnnxModel hidden(const std::string& producer) {
    OnnxModel model = model_of(producer, {0, 4});
    model.weights("fc.weight", {4, 4});
    model.weights("fc.bias", {4});
    set(model.node("Gemm", "hidden", {"x", "fc.weight", "fc.bias"}), "transB", std::int64_t{1});
    model.weights("head.weight", {3, 4});
    model.weights("head.bias", {3});
    return model;
  }
  static void end(OnnxModel& model, const std::string& x, const std::string& weight) {
    set(model.node("Gemm", "head", {x, weight, "head.bias"}), "transB", std::int64_t{1});
    model.output("head");
  }
  void expect_refusal(const OnnxModel& model, const std::string& text) const {
    const std::string error = error_of(model);
    EXPECT_TRUE(contains(error, text)) << text << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
};

TEST_F(AnOnnxTensor, OfOneTrainedNumberIsRefused) {
  for (const char* const op : {"Mul", "Add", "Sub", "Div", "Clip"}) {
    for (const std::vector<std::int64_t>& shape : {Shape{}, Shape{1}}) {
      OnnxModel model = hidden("pytorch");
      model.weights("gain", shape);
      model.node(op, "scaled", {"hidden", "gain"});
      end(model, "scaled", "head.weight");
      expect_refusal(model,
                     op + std::string(" in node scaled with gain, which may be a trained number"));
    }
  }
}

TEST_F(AnOnnxTensor, ThatReplacesANumberOfAnActivationIsRefused) {
  OnnxModel model = hidden("pytorch");
  model.number("root", 1.4142135F);
  model.number("one", 1.0F);
  model.weights("half", {}, 1.0F);  // 0.5
  model.node("Div", "quotient", {"hidden", "root"});
  model.node("Erf", "erf", {"quotient"});
  model.node("Add", "sum", {"erf", "one"});
  model.node("Mul", "product", {"hidden", "sum"});
  model.node("Mul", "gelu", {"product", "half"});
  end(model, "gelu", "head.weight");
  expect_refusal(model, "no counterpart here: Erf in node erf");  // no GELU
}

TEST_F(AnOnnxTensor, OfOneFixedNumberIsThatNumber) {
  const auto scaled_by = [&](const std::string& producer, const std::string& number) {
    OnnxModel model = hidden(producer);
    if (producer == "listed") {
      model.message.set_producer_name("pytorch");
      list(model, {{"fc.weight", "PARAMETER"},
                   {"fc.bias", "PARAMETER"},
                   {"head.weight", "PARAMETER"},
                   {"head.bias", "PARAMETER"},
                   {"scale", "BUFFER"}});
    }
    if (number == "constant") {
      model.number(number, 0.5F);
    } else {
      model.weights(number, {}, 1.0F);
    }
    made_by(model.node("Mul", "scaled", {"hidden", number}), "mul.Tensor", "%hidden, 0.5");
    end(model, "scaled", "head.weight");
    return model;
  };
  for (const auto& [producer, number] :
       std::vector<std::pair<std::string, std::string>>{{"pytorch", "constant"},
                                                        {"listed", "constant"},
                                                        {"listed", "scale"},
                                                        {"listed", "val_0"},
                                                        {"pytorch", "/1/Constant_output_0"},
                                                        {"tf2onnx", "net/rescaling/Cast/x:0"},
                                                        {"tf2onnx", "net/lambda/mul/y:0"},
                                                        {"syncopate", "linear_2.factor"}}) {
    const OnnxModel model = scaled_by(producer, number);
    ASSERT_EQ(error_of(model), "") << number;
    EXPECT_EQ(operations(model), "dense linear dense") << number;
    EXPECT_TRUE(read(model).notes.empty()) << number;
  }
  const std::string variable = "net/gain/mul/ReadVariableOp:0";
  expect_refusal(scaled_by("tf2onnx", variable), "Mul in node scaled with " + variable);
  expect_refusal(scaled_by("tf2onnx", "net/gain/Mul:0"), "Mul in node scaled with net/gain/Mul:0");
  expect_refusal(scaled_by("pytorch", "onnx::Mul_7"), "Mul in node scaled with onnx::Mul_7");
  // TensorFlow turns each division into such a product.
  const OnnxNetwork divided = read(scaled_by("tf2onnx", "ConstantFolding/net/div/truediv_recip:0"));
  ASSERT_EQ(divided.notes.size(), 1U);
  EXPECT_TRUE(contains(divided.notes[0], "if the divisor was trained"));
}

// A value that the exporter computed from the parameter gain, which is not in the file.
TEST_F(AnOnnxTensor, OfANumberThatWasComputedFromATrainedOneIsRefused) {
  OnnxModel model = hidden("pytorch");
  list(model, {{"fc.weight", "PARAMETER"},
               {"fc.bias", "PARAMETER"},
               {"head.weight", "PARAMETER"},
               {"head.bias", "PARAMETER"},
               {"gain", "PARAMETER"}});
  model.weights("exp", {});
  made_by(model.node("Mul", "scaled", {"hidden", "exp"}), "mul.Tensor", "%hidden, %exp");
  end(model, "scaled", "head.weight");
  expect_refusal(model, "Mul in node scaled with exp, which may be a trained number");
}

TEST_F(AnOnnxTensor, ThatIsComputedFromTrainedOnesIsRefused) {
  OnnxModel pruned = hidden("pytorch");
  pruned.weights("mask", {3, 4});
  pruned.node("Mul", "product", {"head.weight", "mask"});
  end(pruned, "hidden", "product");
  expect_refusal(
      pruned,
      "Mul in node product of head.weight, mask, which may be trained; a weight computed from");
  expect_refusal(pruned, "prune.remove()");

  OnnxModel scaled = hidden("pytorch");
  scaled.number("scale", 0.25F);
  scaled.node("Mul", "product", {"head.weight", "scale"});
  end(scaled, "hidden", "product");
  expect_refusal(scaled, "Mul in node product of head.weight, which may be trained");

  OnnxModel summed = hidden("tf2onnx");
  summed.weights("other", {3, 4});
  summed.node("Add", "sum", {"head.weight", "other"});
  end(summed, "hidden", "sum");
  expect_refusal(summed, "Add in node sum of head.weight, other, which may be trained");

  OnnxModel normed = hidden("pytorch");
  normed.node("ReduceL2", "length", {"head.weight"});
  normed.node("Div", "quotient", {"head.weight", "length"});
  end(normed, "hidden", "quotient");
  expect_refusal(normed, "ReduceL2 in node length of head.weight, which may be trained");

  OnnxModel joined = model_of("pytorch", {0, 4});
  joined.weights("fc.weight", {4, 4});
  joined.weights("first", {2});
  joined.number("zero", 0.0F);
  joined.list("two", {2});
  joined.node("Expand", "zeros", {"zero", "two"});
  set(joined.node("Concat", "bias", {"first", "zeros"}), "axis", std::int64_t{0});
  joined.node("Gemm", "fc", {"x", "fc.weight", "bias"});
  joined.output("fc");
  expect_refusal(joined, "Concat in node bias of first, which may be trained");

  OnnxModel spread = model_of("pytorch", {0, 4});
  spread.weights("fc.weight", {4, 4});
  spread.weights("offset", {1});
  spread.list("four", {4});
  spread.node("Expand", "bias", {"offset", "four"});
  spread.node("Gemm", "fc", {"x", "fc.weight", "bias"});
  spread.output("fc");
  expect_refusal(spread, "Expand in node bias of offset, which may be trained");
}

TEST_F(AnOnnxTensor, ThatTheExporterComputedIsRefusedAsAWeight) {
  for (const auto& [producer, weight] :
       std::vector<std::pair<std::string, std::string>>{{"pytorch", "onnx::Gemm_9"},
                                                        {"pytorch", "/head/Mul_output_0"},
                                                        {"tf2onnx", "net/eq/Mul:0"}}) {
    OnnxModel model = hidden(producer);
    model.weights(weight, {3, 4});
    end(model, "hidden", weight);
    expect_refusal(model, "Gemm in node head with " + weight + ", which the exporter computed");
  }
  OnnxModel conv = model_of("pytorch", {0, 3, 8, 8});
  conv.weights("onnx::Conv_8", {4, 3, 1, 1});
  conv.weights("bias", {4});  // a batch norm would have changed it
  conv.node("Conv", "conv", {"x", "onnx::Conv_8", "bias"});
  conv.output("conv");
  expect_refusal(conv, "Conv in node conv with onnx::Conv_8, which the exporter computed");

  OnnxModel listed = hidden("pytorch");
  list(listed, {{"fc.weight", "PARAMETER"},
                {"fc.bias", "PARAMETER"},
                {"head.scale", "PARAMETER"},
                {"head.bias", "PARAMETER"}});
  listed.weights("mul", {3, 4});
  end(listed, "hidden", "mul");
  made_by(*listed.message.mutable_graph()->mutable_node()->rbegin(), "linear.default",
          "%hidden, %mul, %p_head_bias");
  expect_refusal(listed, "Gemm in node head with mul, which the exporter computed");
}

TEST_F(AnOnnxTensor, WhoseAxesTheExporterExchangedIsTrained) {
  OnnxModel listed = model_of("pytorch", {0, 6, 4});
  list(listed, {{"q.weight", "PARAMETER"}, {"q.bias", "PARAMETER"}});
  listed.weights("val_0", {4, 5});
  listed.weights("q.bias", {5});
  const std::string arguments = "%x, %p_q_weight, %p_q_bias";
  made_by(listed.node("MatMul", "val_1", {"x", "val_0"}), "linear.default", arguments);
  made_by(listed.node("Add", "linear", {"val_1", "q.bias"}), "linear.default", arguments);
  listed.output("linear");
  const OnnxNetwork network = read(listed);
  EXPECT_EQ(network.weights.at(0).name, "q.weight");
  EXPECT_EQ(network.weights.at(1).name, "q.bias");
  EXPECT_TRUE(network.notes.empty());

  OnnxModel older = model_of("pytorch", {0, 4});
  older.weights("onnx::MatMul_7", {4, 3});
  older.node("MatMul", "/fc/MatMul", {"x", "onnx::MatMul_7"});
  older.output("/fc/MatMul");
  ASSERT_EQ(error_of(older), "");
  ASSERT_EQ(read(older).notes.size(), 1U);  // it may contain a factor
  EXPECT_TRUE(
      contains(read(older).notes[0], "the exporter computed weights or biases of these layers"));
}

TEST_F(AnOnnxTensor, ThatIsABufferIsRefusedAsAWeight) {
  OnnxModel model = model_of("pytorch", {0, 3, 8, 8});
  list(model, {{"conv.weight", "PARAMETER"}, {"blur", "BUFFER"}});
  model.weights("blur", {3, 1, 3, 3});
  set(model.node("Conv", "blurred", {"x", "blur"}), "group", std::int64_t{3});
  model.weights("conv.weight", {4, 3, 1, 1});
  model.node("Conv", "conv", {"blurred", "conv.weight"});
  model.output("conv");
  expect_refusal(model, "Conv in node blurred with blur, which is not trained in the program");
  // Constant nodes are no parameters of PyTorch; the Add is no bias of the layer.
  OnnxModel shifted = model_of("pytorch", {0, 4});
  shifted.weights("fc.weight", {4, 2});
  shifted.node("MatMul", "fc", {"x", "fc.weight"});
  TensorProto& values = *shifted.node("Constant", "shift", {}).add_attribute()->mutable_t();
  auto& attribute = *shifted.message.mutable_graph()->mutable_node(1)->mutable_attribute(0);
  attribute.set_name("value");
  attribute.set_type(4);
  values.set_data_type(1);
  values.add_dims(2);
  values.add_float_data(1.0F);
  values.add_float_data(2.0F);
  shifted.node("Add", "sum", {"fc", "shift"});
  shifted.output("sum");
  expect_refusal(shifted, "Add in node sum of a constant that is no layer's bias and no number");
}

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
  maps.node("BatchNormalization", "norm", {"map", "ones", "zeros", "mean", "variance"});
  maps.output("norm");
  expect_refusal(maps, "BatchNormalization in node norm without a trained weight");
  // Files of other programs may have their parameters as Constant nodes.
  maps.message.set_producer_name("other");
  EXPECT_EQ(operations(maps), "conv2d batch_norm");
  EXPECT_TRUE(contains(read(maps).notes.at(0), "may be a fixed number"));
}

// Programs that simplify files store the bounds of ReLU6 as tensors with names of their own.
TEST_F(AnOnnxTensor, ThatIsABoundOfClipIsRefusedIfItIsNamedAsAParameter) {
  const auto relu6 = [](const std::string& producer, const std::string& low,
                        const std::string& high, const Shape& shape) {
    OnnxModel model = hidden(producer);
    model.weights(low, shape, 0.0F);
    model.weights(high, shape, 12.0F);  // 6
    model.node("Clip", "clip", {"hidden", low, high});
    end(model, "clip", "head.weight");
    return model;
  };
  for (const auto& [producer, low, high] : std::vector<std::array<std::string, 3>>{
           {"pytorch", "onnx::Clip_9", "onnx::Clip_10"},
           {"pytorch", "const_fold_opt__21", "const_fold_opt__22"},
           {"pytorch", "/1/Constant_output_0", "/1/Constant_1_output_0"},
           {"pytorch", "12", "13"},
           {"pytorch", "val_1", "val_2"},
           {"pytorch", "min", "max"},
           {"paddle", "min", "max"},
           {"paddle", "fill_constant_1.tmp_0", "p2o.Constant.2"},
           {"tf2onnx", "const_min__1", "const_max__2"},
           {"", "lo", "hi"}}) {
    for (const Shape& shape : {Shape{}, Shape{1}}) {
      const OnnxModel model = relu6(producer, low, high, shape);
      ASSERT_EQ(error_of(model), "") << low;
      EXPECT_EQ(operations(model), "dense relu6 dense") << low;
    }
  }
  EXPECT_EQ(read(relu6("", "lo", "hi", {})).notes.at(1),
            "hi of node clip stays as it is; if it was trained, the network trains otherwise");
  for (const auto& [producer, high] : std::vector<std::pair<std::string, std::string>>{
           {"pytorch", "gain"},
           {"pytorch", "act.bound"},
           {"", "act.bound"},
           {"tf2onnx", "net/act/clip_by_value/ReadVariableOp:0"}}) {
    expect_refusal(relu6(producer, "const_1", high, {}), "Clip in node clip with " + high);
  }
}

TEST_F(AnOnnxTensor, MayBeANumberOfAGeluThatWasSimplified) {
  OnnxModel model = hidden("pytorch");
  for (const auto& [name, value] : std::vector<std::pair<std::string, float>>{
           {"onnx::Div_9", 1.4142135F}, {"onnx::Add_12", 1.0F}, {"onnx::Mul_15", 0.5F}}) {
    model.weights(name, {}, 2.0F * value);
  }
  model.node("Div", "quotient", {"hidden", "onnx::Div_9"});
  model.node("Erf", "erf", {"quotient"});
  model.node("Add", "sum", {"erf", "onnx::Add_12"});
  model.node("Mul", "product", {"hidden", "sum"});
  model.node("Mul", "gelu", {"product", "onnx::Mul_15"});
  end(model, "gelu", "head.weight");
  ASSERT_EQ(error_of(model), "");
  EXPECT_EQ(operations(model), "dense gelu dense");
}

// One with an axis is the bias of a layer of one feature; that of a plain number has none.
TEST_F(AnOnnxTensor, OfOneElementIsTheBiasOfALayerOfOneFeature) {
  for (const char* const producer : {"pytorch", "tf2onnx", "other"}) {
    OnnxModel model = model_of(producer, {0, 4});
    model.weights("weight", {4, 1});
    model.weights("const_fold_opt__13", {1});
    model.node("MatMul", "product", {"x", "weight"});
    model.node("Add", "sum", {"product", "const_fold_opt__13"});
    model.output("sum");
    ASSERT_EQ(error_of(model), "") << producer;
    EXPECT_EQ(operations(model), "dense") << producer;
    EXPECT_EQ(values(read(model), "product.bias"), std::vector<float>{0.005F}) << producer;
  }
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
    model.node("BatchNormalization", "bn",
               {"map", scale, "bn/ReadVariableOp:0", "mean", "variance"});
    model.output("bn");
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
  keras.node(
      "Conv", "Conv__36",
      {"x", "net/conv2d/convolution/merged_input:0", "net/batch_normalization_1/batchnorm/sub:0"});
  keras.output("Conv__36");
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
  auto& rule = *dense.message.mutable_graph()->mutable_node(0)->add_metadata_props();
  rule.set_key("pkg.onnxscript.rewriter.rule_name");
  rule.set_value("FuseBatchNormIntoGemm");
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
  NodeProto& conv =
      model.node("Conv", "/batchnorm_block/0/Conv", {"x", "batchnorm_block.0.weight"});
  auto& entry = *conv.add_metadata_props();
  entry.set_key("namespace");
  entry.set_value(": net.ConvBatchNormRelu/0: torch.nn.modules.conv.Conv2d/conv2d: aten.conv2d");
  model.batch_norm("bn", "/batchnorm_block/0/Conv", 4);
  model.output("bn");
  EXPECT_TRUE(read(model).notes.empty()) << read(model).notes.at(0);
}

// Two layers of equal first values, which both exporters of PyTorch store once.
TEST_F(AnOnnxTensor, OfEqualValuesIsTrainedApart) {
  OnnxModel older = model_of("pytorch", {0, 4});
  older.node("Identity", "2.weight", {"0.weight"});
  older.node("Identity", "2.bias", {"0.bias"});
  older.weights("0.weight", {4, 4});
  older.weights("0.bias", {4});
  older.node("Gemm", "first", {"x", "0.weight", "0.bias"});
  older.node("Gemm", "second", {"first", "2.weight", "2.bias"});
  older.output("second");

  OnnxModel newer = model_of("pytorch", {0, 4});
  list(newer, {{"0.weight", "PARAMETER"},
               {"0.bias", "PARAMETER"},
               {"2.weight", "PARAMETER"},
               {"2.bias", "PARAMETER"}});
  newer.weights("0.weight", {4, 4});  // the biases are zeros, which the exporter left out
  made_by(newer.node("Gemm", "first", {"x", "0.weight"}), "linear.default",
          "%x, %p_0_weight, %p_0_bias");
  made_by(newer.node("Gemm", "second", {"first", "0.weight"}), "linear.default",
          "%first, %p_2_weight, %p_2_bias");
  newer.output("second");
  for (const OnnxModel& model : {older, newer}) {
    ASSERT_EQ(error_of(model), "");
    const OnnxNetwork network = read(model);
    std::vector<std::string> names;
    for (const OnnxWeights& each : network.weights) names.push_back(each.name);
    EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
    EXPECT_EQ(values(network, "0.weight"), values(network, "2.weight"));
    EXPECT_TRUE(network.notes.empty());
  }
  EXPECT_EQ(values(read(newer), "2.bias"), std::vector<float>(4));
  // One parameter that two layers share.
  auto* const property = newer.message.mutable_graph()->mutable_node(1)->mutable_metadata_props(0);
  property->set_value("call_function[target=aten.linear](args = (%first, %p_0_weight, %p_0_bias))");
  expect_refusal(newer, "Gemm in node second with the tensor 0.weight of 0, too");
}

// Of the shape [1, 4] or [1, 1, 1, 3], as a list.
TEST_F(AnOnnxTensor, ThatTwoLayersShareAsTheirWeightIsRefusedWhateverItsShape) {
  OnnxModel model = model_of("pytorch", {0, 1, 8, 8});
  model.weights("blur", {1, 1, 1, 3});
  model.node("Conv", "one", {"x", "blur"});
  model.node("Conv", "two", {"one", "blur"});
  model.output("two");
  expect_refusal(model, "Conv in node two with the tensor blur of");
}

}  // namespace
}  // namespace syncopate
