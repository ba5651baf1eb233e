// Parts of a value that a file takes out of a sequence become nodes. PyTorch writes x.chunk(3, -1)
// as SplitToSequence and a SequenceAt for each part.
#include "deploy/onnx/replaced_nodes.h"

namespace syncopate {

using proto::onnx::NodeProto;

void join_parts(OnnxFile& file) {
  OnnxGraph graph(file);
  graph.fold_constants();
  const OnnxConstants& constants = graph.constants();
  for (NodeProto& node : *file.mutable_graph().mutable_node()) {
    if (!is_standard(node) || node.op_type() != "SequenceAt" || node.input_size() != 2) continue;
    const NodeProto* split = graph.writer(node.input(0));
    if (split == nullptr || !is_standard(*split) || split->op_type() != "SplitToSequence" ||
        split->input_size() != 2 || split->output_size() != 1) {
      continue;
    }
    const OnnxConstant* size = constants.find(split->input(1));
    const auto index = constants.integers(node.input(1));
    if (size == nullptr || !size->shape.empty() || !index || index->size() != 1) continue;
    const auto sizes = constants.integers(split->input(1));
    const OnnxAttributes attributes(file, *split);
    if (!sizes || sizes->size() != 1 || attributes.integer("keepdims", 1) == 0) continue;
    node.set_op_type("Part");
    node.set_domain(kJoinedDomain);
    node.clear_input();
    node.add_input(split->input(0));
    node.clear_attribute();
    add_integer(node, "axis", attributes.integer("axis", 0));
    add_integer(node, "index", index->front());
    add_integer(node, "size", sizes->front());
  }
}

}  // namespace syncopate
