// What PyTorch and Keras train is trained as it was, or refused by name; what they do not train is
// not trained.
#include <array>
#include <utility>

#include "tests/deploy/onnx/onnx_origins_case.h"

namespace syncopate {
namespace {

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
      list(model, as_words("fc.weight fc.bias head.weight head.bias"), {"scale"});
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
  list(model, as_words("fc.weight fc.bias head.weight head.bias gain"));
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
  set(joined.node("Concat", "bias", {"first", "zeros"}), "axis", 0);
  joined.last("Gemm", "fc", {"x", "fc.weight", "bias"});
  expect_refusal(joined, "Concat in node bias of first, which may be trained");

  OnnxModel spread = model_of("pytorch", {0, 4});
  spread.weights("fc.weight", {4, 4});
  spread.weights("offset", {1});
  spread.list("four", {4});
  spread.node("Expand", "bias", {"offset", "four"});
  spread.last("Gemm", "fc", {"x", "fc.weight", "bias"});
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
  conv.last("Conv", "conv", {"x", "onnx::Conv_8", "bias"});
  expect_refusal(conv, "Conv in node conv with onnx::Conv_8, which the exporter computed");

  OnnxModel listed = hidden("pytorch");
  list(listed, as_words("fc.weight fc.bias head.scale head.bias"));
  listed.weights("mul", {3, 4});
  end(listed, "hidden", "mul");
  made_by(*listed.message.mutable_graph()->mutable_node()->rbegin(), "linear.default",
          "%hidden, %mul, %p_head_bias");
  expect_refusal(listed, "Gemm in node head with mul, which the exporter computed");
}

TEST_F(AnOnnxTensor, WhoseAxesTheExporterExchangedIsTrained) {
  OnnxModel listed = model_of("pytorch", {0, 6, 4});
  list(listed, {"q.weight", "q.bias"});
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
  older.last("MatMul", "/fc/MatMul", {"x", "onnx::MatMul_7"});
  ASSERT_EQ(error_of(older), "");
  ASSERT_EQ(read(older).notes.size(), 1U);  // it may contain a factor
  EXPECT_TRUE(
      contains(read(older).notes[0], "the exporter computed weights or biases of these layers"));
}

TEST_F(AnOnnxTensor, ThatIsABufferIsRefusedAsAWeight) {
  OnnxModel model = model_of("pytorch", {0, 3, 8, 8});
  list(model, {"conv.weight"}, {"blur"});
  model.weights("blur", {3, 1, 3, 3});
  set(model.node("Conv", "blurred", {"x", "blur"}), "group", 3);
  model.weights("conv.weight", {4, 3, 1, 1});
  model.last("Conv", "conv", {"blurred", "conv.weight"});
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
  shifted.last("Add", "sum", {"fc", "shift"});
  expect_refusal(shifted, "Add in node sum of a constant that is no layer's bias and no number");
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
    model.last("Add", "sum", {"product", "const_fold_opt__13"});
    ASSERT_EQ(error_of(model), "") << producer;
    EXPECT_EQ(operations(model), "dense") << producer;
    EXPECT_EQ(values(read(model), "product.bias"), std::vector<float>{0.005F}) << producer;
  }
}

// Two layers of equal first values, which both exporters of PyTorch store once.
TEST_F(AnOnnxTensor, OfEqualValuesIsTrainedApart) {
  OnnxModel older = model_of("pytorch", {0, 4});
  older.node("Identity", "2.weight", {"0.weight"});
  older.node("Identity", "2.bias", {"0.bias"});
  older.weights("0.weight", {4, 4});
  older.weights("0.bias", {4});
  older.node("Gemm", "first", {"x", "0.weight", "0.bias"});
  older.last("Gemm", "second", {"first", "2.weight", "2.bias"});

  OnnxModel newer = model_of("pytorch", {0, 4});
  list(newer, as_words("0.weight 0.bias 2.weight 2.bias"));
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
  model.last("Conv", "two", {"one", "blur"});
  expect_refusal(model, "Conv in node two with the tensor blur of");
}

}  // namespace
}  // namespace syncopate
