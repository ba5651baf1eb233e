// Collects the nodes of an ONNX file that have no counterpart in this program, by operator and
// reason, for one error message that lists them all.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "deploy/onnx/onnx_graph.h"

namespace syncopate {

// Collects the refused nodes of one file and throws the error for them. One thread only.
class OnnxMissing {
 public:
  using Node = proto::onnx::NodeProto;

  // nodes: the nodes of the graph on which the network's output depends, from OnnxGraph::sort().
  OnnxMissing(const OnnxGraph& graph, const std::vector<const Node*>& nodes);

  // Adds a node that has no counterpart in this program. what: why the node is refused. The nodes
  // that read the output of this node are then checked only for operators and attributes that are
  // never supported.
  void refuse(const Node& node, const std::string& what);
  void add(const std::string& op, const std::string& what, const std::string& node);
  // Records that a node was not checked completely, because it reads the output of a refused node.
  void note_unchecked() noexcept { has_unchecked_ = true; }
  // Throws UsageError with a list of the refused nodes, if there are any.
  void throw_if_any() const;

 private:
  struct Missing {
    std::string op;
    std::string what;  // why the nodes are refused, with a space in front
    std::vector<std::string> nodes;
  };

  // Finds the nodes of attention, which are two matrix products with a softmax between them, and
  // the nodes that compute the inputs of these nodes.
  void find_attention(const std::vector<const Node*>& nodes);
  // Whether a refused node belongs to attention, which PyTorch writes as dozens of nodes.
  bool is_of_attention(const Node& node) const;

  const OnnxGraph& graph_;
  std::vector<Missing> missing_;
  std::set<const Node*> attention_;
  bool has_unchecked_ = false;
};

}  // namespace syncopate
