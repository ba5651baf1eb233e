#include "tests/deploy/onnx/onnx_model.h"

#include <fstream>
#include <functional>
#include <numeric>

namespace syncopate {
namespace {

AttributeProto& attribute(NodeProto& node, const std::string& name, std::int32_t type) {
  AttributeProto& added = *node.add_attribute();
  added.set_name(name);
  added.set_type(type);
  return added;
}

}  // namespace

OnnxModel::OnnxModel(const std::vector<std::int64_t>& input, std::int64_t opset) {
  message.set_ir_version(9);
  message.add_opset_import()->set_version(opset);
  auto& value = *message.mutable_graph()->add_input();
  value.set_name("x");
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(1);
  for (const std::int64_t side : input) {
    auto& dimension = *type.mutable_shape()->add_dim();
    if (side > 0) {
      dimension.set_dim_value(side);
    } else {
      dimension.set_dim_param("batch");
    }
  }
}

NodeProto& OnnxModel::node(const std::string& op, const std::string& name,
                           const std::vector<std::string>& inputs) {
  NodeProto& added = *message.mutable_graph()->add_node();
  added.set_op_type(op);
  added.set_name(name);
  for (const std::string& input : inputs) added.add_input(input);
  added.add_output(name);
  return added;
}

TensorProto& OnnxModel::weights(const std::string& name, const std::vector<std::int64_t>& shape,
                                float step) {
  TensorProto& tensor = *message.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(1);
  for (const std::int64_t side : shape) tensor.add_dims(side);
  const std::int64_t size =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t i = 0; i < size; ++i) {
    tensor.add_float_data((static_cast<float>(i) + 0.5F) * step);
  }
  return tensor;
}

TensorProto& OnnxModel::list(const std::string& name, const std::vector<std::int64_t>& values) {
  TensorProto& tensor = *message.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(7);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}

void OnnxModel::number(const std::string& name, float value) {
  set(node("Constant", name, {}), "value_float", value);
}

NodeProto& OnnxModel::batch_norm(const std::string& name, const std::string& input,
                                 std::int64_t channels) {
  std::vector<std::string> inputs = {input};
  for (const char* const suffix : {".weight", ".bias", ".running_mean", ".running_var"}) {
    weights(name + suffix, {channels});
    inputs.push_back(name + suffix);
  }
  return node("BatchNormalization", name, inputs);
}

void OnnxModel::save(const std::filesystem::path& path) const {
  std::ofstream(path, std::ios::binary) << bytes();
}

void set(NodeProto& node, const std::string& name, std::int64_t value) {
  attribute(node, name, 2).set_i(value);
}
void set(NodeProto& node, const std::string& name, float value) {
  attribute(node, name, 1).set_f(value);
}
void set(NodeProto& node, const std::string& name, const std::string& text) {
  attribute(node, name, 3).set_s(text);
}
void set_list(NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
  AttributeProto& added = attribute(node, name, 7);
  for (const std::int64_t value : values) added.add_ints(value);
}

OnnxModel small_onnx_network() {
  OnnxModel model({0, 3, 8, 8});
  model.weights("conv1.weight", {4, 3, 3, 3});
  set_list(model.node("Conv", "/conv1/Conv", {"x", "conv1.weight"}), "pads", {1, 1, 1, 1});
  model.batch_norm("bn1", "/conv1/Conv", 4);
  model.node("Relu", "relu", {"bn1"});
  NodeProto& pool = model.node("MaxPool", "pool", {"relu"});
  set_list(pool, "kernel_shape", {2, 2});
  set_list(pool, "strides", {2, 2});
  model.node("Flatten", "flat", {"pool"});
  model.weights("fc.weight", {5, 64});
  model.weights("fc.bias", {5});
  set(model.last("Gemm", "fc", {"flat", "fc.weight", "fc.bias"}), "transB", 1);
  return model;
}

}  // namespace syncopate
