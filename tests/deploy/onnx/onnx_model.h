// Builds ONNX files in code, node by node, as PyTorch and Keras write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "deploy/onnx/proto/onnx.pb.h"

namespace syncopate {

using proto::onnx::AttributeProto;
using proto::onnx::ModelProto;
using proto::onnx::NodeProto;
using proto::onnx::TensorProto;

struct OnnxModel {
  ModelProto message;

  // `input`: all sides, the first of which is 0 for a number of samples that is not fixed.
  explicit OnnxModel(const std::vector<std::int64_t>& input, std::int64_t opset = 20);

  // Adds a node; its output has the name of the node. Returns the node.
  NodeProto& node(const std::string& op, const std::string& name,
                  const std::vector<std::string>& inputs);
  // Adds a node in the same way, and its output to the outputs of the network.
  NodeProto& last(const std::string& op, const std::string& name,
                  const std::vector<std::string>& inputs) {
    output(name);
    return node(op, name, inputs);
  }
  // Adds a stored tensor of floats 0.5, 1.5, 2.5, ... times `step`.
  TensorProto& weights(const std::string& name, const std::vector<std::int64_t>& shape,
                       float step = 0.01F);
  TensorProto& list(const std::string& name, const std::vector<std::int64_t>& values);
  // Adds a number that Constant computes.
  void number(const std::string& name, float value);
  // Adds "NAME" of scale, bias, running mean and running variance, of `channels`.
  NodeProto& batch_norm(const std::string& name, const std::string& input, std::int64_t channels);
  void output(const std::string& name) { message.mutable_graph()->add_output()->set_name(name); }

  std::string bytes() const { return message.SerializeAsString(); }
  void save(const std::filesystem::path& path) const;
};

void set(NodeProto& node, const std::string& name, std::int64_t value);
inline void set(NodeProto& node, const std::string& name, int value) {
  set(node, name, std::int64_t{value});
}
void set(NodeProto& node, const std::string& name, float value);
void set(NodeProto& node, const std::string& name, const std::string& text);
void set_list(NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values);
// Adds an entry to the metadata of a node or of a graph.
template <typename Message>
void set_metadata(Message& message, const std::string& key, const std::string& value) {
  auto& entry = *message.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

// Returns the network of many tests: [N, 3, 8, 8], conv of 4 channels with batch norm and ReLU,
// max-pool, flatten, dense of 5.
OnnxModel small_onnx_network();

}  // namespace syncopate
