// What tests of single operators of ONNX share: a fixture with a map, whose operators they add.
#pragma once

#include <string>
#include <vector>

#include "tests/deploy/onnx/onnx_network_case.h"

namespace syncopate {

using Sides = std::vector<std::int64_t>;

// A map [N, 4, 6, 8] of a convolution, and a ReLU behind what a test makes of it.
class AnOnnxMap : public AnOnnxNetwork {
 protected:
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
    model.last("Relu", "end", {value});
    return AnOnnxNetwork::read(model);
  }
  // Returns the operations between the convolution and the ReLU, such as "upsample2d".
  std::string operations(const std::string& value) {
    return AnOnnxNetwork::operations(read(value), 2);
  }
  // Returns what is said of the operator that has no counterpart.
  std::string refusal(const std::string& value) {
    const std::string what = message_if_thrown<UsageError>([&] { read(value); });
    const std::string start = "no counterpart here: ";
    const std::size_t begin = what.find(start);
    if (begin == std::string::npos) return what;
    const std::size_t end = what.find("; `syncopate convert");
    return what.substr(begin + start.size(), end - begin - start.size());
  }
  template <typename Op>
  Op operation(const std::string& value) {
    return AnOnnxNetwork::operation<Op>(read(value));
  }

  OnnxModel model_ = map_of_four(6, 8);
};

}  // namespace syncopate
