// Parts of a value that a file takes out of a sequence become nodes of their own. PyTorch writes
// x.chunk(3, -1) as SplitToSequence and a SequenceAt for each part.
#include <map>
#include <string>

#include "deploy/onnx/onnx_reader.h"

namespace syncopate {

using proto::onnx::NodeProto;

void join_parts(OnnxFile& file) {
  OnnxConstants constants(file);
  std::map<std::string, const NodeProto*, std::less<>> splits;
  for (const NodeProto& node : file.graph().node()) {
    constants.fold(node, [](const auto&) { return std::nullopt; });
    if (is_standard(node) && node.op_type() == "SplitToSequence" && node.input_size() == 2 &&
        node.output_size() == 1) {
      splits.emplace(node.output(0), &node);
    }
  }
  for (NodeProto& node : *file.mutable_graph().mutable_node()) {
    if (!is_standard(node) || node.op_type() != "SequenceAt" || node.input_size() != 2) continue;
    const auto split = splits.find(node.input(0));
    if (split == splits.end()) continue;
    const OnnxConstant* size = constants.find(split->second->input(1));
    const auto index = constants.integers(node.input(1));
    if (size == nullptr || !size->shape.empty() || !index || index->size() != 1) continue;
    const auto sizes = constants.integers(split->second->input(1));
    const OnnxAttributes attributes(file, *split->second);
    if (!sizes || sizes->size() != 1 || attributes.integer("keepdims", 1) == 0) continue;
    node.set_op_type("Part");
    node.set_domain(kJoinedDomain);
    node.clear_input();
    node.add_input(split->second->input(0));
    node.clear_attribute();
    add_integer(node, "axis", attributes.integer("axis", 0));
    add_integer(node, "index", index->front());
    add_integer(node, "size", sizes->front());
  }
}

}  // namespace syncopate
