// What an ONNX file has and this program does not: the nodes without a counterpart, by operator and
// reason, for one message that lists them all.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "deploy/onnx/onnx_graph.h"

namespace syncopate {

// One thread only.
class OnnxMissing {
 public:
  using Node = proto::onnx::NodeProto;

  // nodes: that the output depends on.
  OnnxMissing(const OnnxGraph& graph, const std::vector<const Node*>& nodes);

  // Notes that a node has no counterpart; the nodes that read it are only checked for theirs.
  void refuse(const Node& node, const std::string& what);
  void add(const std::string& op, const std::string& what, const std::string& node);
  // Notes that a node reads the output of one that was refused.
  void note_unchecked() noexcept { has_unchecked_ = true; }
  // Throws UsageError that lists what was refused, if anything was.
  void throw_if_any() const;

 private:
  struct Missing {
    std::string op;
    std::string what;  // why it is refused, with a space in front
    std::vector<std::string> nodes;
  };

  // Finds the nodes that attention consists of: a product, a softmax and a product, and what
  // computes their inputs.
  void find_attention(const std::vector<const Node*>& nodes);
  // Whether a node that is refused is one of attention. PyTorch writes it as dozens of nodes.
  bool is_of_attention(const Node& node) const;

  const OnnxGraph& graph_;
  std::vector<Missing> missing_;
  std::set<const Node*> attention_;
  bool has_unchecked_ = false;
};

}  // namespace syncopate
