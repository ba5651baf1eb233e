// Passes over the nodes of an ONNX file before it is read: several nodes that are one operation
// become one node of the domain kJoinedDomain, or one of ONNX, and the last activation goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/onnx/onnx_attributes.h"
#include "deploy/onnx/onnx_graph.h"

namespace syncopate {

// Replaces SplitToSequence and SequenceAt, as PyTorch writes chunk(), by nodes Part with the
// attributes axis, index and size.
void join_parts(OnnxFile& file);
// Replaces Unsqueeze, Tile and Reshape that repeat rows or columns, as Keras enlarges maps, by a
// node Repeat with the attributes axis and count.
void join_repeats(OnnxFile& file);
// Replaces several nodes that are one activation, such as x * Sigmoid(x), by one node.
void join_activations(OnnxFile& file);
// Whether HardSigmoid has the slope 1/6 and the offset 1/2 of PyTorch.
bool is_hard_sigmoid(const OnnxAttributes& attributes);

// The activation at the end of a network that its loss contains.
struct DroppedActivation {
  const proto::onnx::NodeProto* softmax = nullptr;  // null: there was none
  std::int64_t axis = -1;                           // of the softmax
  bool is_sigmoid = false;                          // the loss is binary-cross-entropy
};
// Makes the last softmax or sigmoid an Identity and tells it in `notes`. Only operators that change
// the shape may stand behind it. graph: of this file, not sorted.
DroppedActivation drop_last_activation(OnnxFile& file, const OnnxGraph& graph,
                                       std::vector<std::string>& notes);

}  // namespace syncopate
