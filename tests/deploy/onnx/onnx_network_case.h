// What tests of networks in ONNX files share: a fixture that reads a file, and a first map.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "tests/deploy/onnx/onnx_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {

class AnOnnxNetwork : public testing::Test {
 protected:
  OnnxNetwork read(const OnnxModel& model) const {
    model.save(folder_.path() / "net.onnx");
    return read_onnx_network(folder_.path() / "net.onnx");
  }
  // Returns the operations between the first and the last `ends` nodes, by default between the
  // input and the loss, such as "conv2d relu".
  static std::string operations(const OnnxNetwork& network, std::size_t ends = 1) {
    std::string text;
    for (std::size_t i = ends; i + ends < network.graph.nodes.size(); ++i) {
      text += (i > ends ? " " : "") + std::string(name(network.graph.nodes[i].operation));
    }
    return text;
  }
  std::string operations(const OnnxModel& model) const { return operations(read(model)); }
  static std::vector<float> values(const OnnxNetwork& network, const std::string& tensor) {
    for (const OnnxWeights& each : network.weights) {
      if (each.name == tensor) return each.values;
    }
    ADD_FAILURE() << "there is no tensor " << tensor;
    return {};
  }
  template <typename Op>
  static const Op& operation(const OnnxNetwork& network) {
    for (const Node& node : network.graph.nodes) {
      if (const Op* const op = std::get_if<Op>(&node.operation)) return *op;
    }
    throw InternalError("no such node");
  }
  std::string error_of(const OnnxModel& model) const {
    return message_if_thrown<UsageError>([&] { read(model); });
  }

  TemporaryFolder folder_;
};

// A map [N, 4, H, W] of a convolution in front of the operators of a test.
inline OnnxModel map_of_four(std::int64_t height = 8, std::int64_t width = 8) {
  OnnxModel model({0, 3, height, width});
  model.weights("conv.weight", {4, 3, 1, 1});
  model.node("Conv", "map", {"x", "conv.weight"});
  return model;
}

}  // namespace syncopate
