// Passes over the nodes of an ONNX file before the network is read. They replace several nodes that
// are one operation by one node of ONNX or of the domain kJoinedDomain, and remove the last
// activation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/onnx/onnx_attributes.h"
#include "deploy/onnx/onnx_graph.h"

namespace syncopate {

// Replaces SplitToSequence and SequenceAt, which PyTorch writes for chunk(), by nodes Part with the
// attributes axis, index and size.
void join_parts(OnnxFile& file);
// Replaces Unsqueeze, Tile and Reshape that together repeat rows or columns by a node Repeat with
// the attributes axis and count. Keras writes such nodes to enlarge maps.
void join_repeats(OnnxFile& file);
// Replaces several nodes that compute one activation, such as x * Sigmoid(x), by one node.
void join_activations(OnnxFile& file);
// Whether these attributes of a HardSigmoid node are PyTorch's: the slope alpha = 1/6 and the
// offset beta = 1/2.
bool is_hard_sigmoid(const OnnxAttributes& attributes);

// The activation at the end of a network, which becomes a part of the loss.
struct DroppedActivation {
  const proto::onnx::NodeProto* softmax = nullptr;  // null if there was no softmax
  std::int64_t axis = -1;                           // axis of the softmax
  bool is_sigmoid = false;  // whether there was a sigmoid; the loss is then binary-cross-entropy
};
// Replaces the last softmax or sigmoid by an Identity and adds a note about it. Only operators that
// change the shape may follow the activation. graph: the graph of `file`, not yet sorted.
DroppedActivation drop_last_activation(OnnxFile& file, const OnnxGraph& graph,
                                       std::vector<std::string>& notes);

}  // namespace syncopate
