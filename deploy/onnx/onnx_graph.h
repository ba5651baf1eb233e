// The graph of an ONNX file: its nodes, the nodes that write and read each value, and the
// constants. Used by the reader and by the passes that replace nodes.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "deploy/onnx/onnx_constants.h"
#include "deploy/onnx/onnx_file.h"

namespace syncopate {

// Finds the nodes that write and read each value of one ONNX file, which must outlive this object.
// One thread only.
class OnnxGraph {
 public:
  using Node = proto::onnx::NodeProto;

  explicit OnnxGraph(OnnxFile& file);

  OnnxFile& file() const noexcept { return file_; }
  const OnnxConstants& constants() const noexcept { return constants_; }
  OnnxConstants& constants() noexcept { return constants_; }
  // The name of the value that is the output of the file; "" if the file has no output or several
  // outputs.
  const std::string& output() const noexcept { return output_; }
  // Throws UsageError unless the file has exactly one output. Throws FileError if two nodes write
  // the same value.
  void require_one_output() const;
  // Computes all constants that depend only on stored tensors, in the order of the file's nodes.
  void fold_constants();

  // Returns the node that writes a value; null for an input or a stored tensor.
  const Node* writer(const std::string& value) const;
  std::span<Node* const> readers(const std::string& value) const;
  // Returns the node that reads the first output of `node`, if it is the only reader. Returns null
  // if there are several readers or none, or if this output is the output of the network.
  const Node* only_reader(const Node& node) const;
  // Returns the constant that a node reads at input `index`; null if the input is not constant.
  const OnnxConstant* constant(const Node& node, int index) const;

  // Returns the nodes on which the output depends, each after the nodes that write its inputs.
  // Afterwards readers() returns only nodes of this list, and constants() has all values that
  // depend only on stored tensors. Throws FileError for a cycle.
  std::vector<const Node*> sort();

 private:
  OnnxFile& file_;
  OnnxConstants constants_;
  std::map<std::string, Node*, std::less<>> writers_;
  std::map<std::string, std::vector<Node*>, std::less<>> readers_;
  std::string output_;
  std::string written_twice_;  // a value that two nodes write; "" if there is none
};

// Whether a node has input `index`. An absent input may be an empty name.
bool has_input(const proto::onnx::NodeProto& node, int index);

}  // namespace syncopate
