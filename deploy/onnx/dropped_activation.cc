// The last activation of a network, which its loss contains.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "deploy/onnx/replaced_nodes.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

DroppedActivation drop_activation(OnnxFile& file, const NodeProto& node,
                                  std::vector<std::string>& notes) {
  DroppedActivation dropped;
  if (node.op_type() == "Softmax" || node.op_type() == "LogSoftmax") {
    dropped.softmax = &node;
    dropped.axis = OnnxAttributes(file, node).integer("axis", -1);
    notes.push_back(fmt::format("the {} at the end ({}) was dropped: the loss contains it",
                                node.op_type(), node_name(node)));
  } else if (node.op_type() == "Sigmoid") {
    notes.push_back(fmt::format(
        "the Sigmoid at the end ({}) was dropped, and the loss is binary-cross-entropy, which "
        "contains it",
        node_name(node)));
    dropped.is_sigmoid = true;
  } else {
    return dropped;
  }
  for (NodeProto& each : *file.mutable_graph().mutable_node()) {
    if (&each != &node) continue;
    each.set_op_type("Identity");
    each.clear_attribute();
  }
  return dropped;
}

}  // namespace

DroppedActivation drop_last_activation(OnnxFile& file, const OnnxGraph& graph,
                                       std::vector<std::string>& notes) {
  constexpr std::array kOfShapes = {"Identity", "Transpose", "Flatten", "Reshape", "Squeeze"};
  constexpr int kMostSteps = 8;
  std::string at = graph.output();
  for (int step = 0; step < kMostSteps; ++step) {
    const NodeProto* writer = graph.writer(at);
    if (writer == nullptr || writer->input_size() < 1) break;
    // PyTorch reads the shape for a Reshape.
    const auto readers = std::ranges::count_if(
        graph.readers(at), [](const NodeProto* reader) { return reader->op_type() != "Shape"; });
    if (readers > (step == 0 ? 0 : 1) || !is_standard(*writer)) break;
    if (std::ranges::find(kOfShapes, writer->op_type()) == kOfShapes.end()) {
      return drop_activation(file, *writer, notes);
    }
    at = writer->input(0);
  }
  return {};
}

}  // namespace syncopate
