// What tests of single operators of ONNX share: a fixture with a map, whose operators they add.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"
#include "tests/deploy/onnx/onnx_model.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {

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

}  // namespace syncopate
