// The nodes of an ONNX file, which of them write and read each value, and the constants among the
// values. The reader and the passes that replace nodes walk through it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "deploy/onnx/onnx_constants.h"
#include "deploy/onnx/onnx_file.h"

namespace syncopate {

// One thread only. Lives as long as its file.
class OnnxGraph {
 public:
  using Node = proto::onnx::NodeProto;

  explicit OnnxGraph(OnnxFile& file);

  OnnxFile& file() const noexcept { return file_; }
  const OnnxConstants& constants() const noexcept { return constants_; }
  OnnxConstants& constants() noexcept { return constants_; }
  // The value that the file calls its output; "" unless there is one.
  const std::string& output() const noexcept { return output_; }
  // Throws UsageError unless there is one output, FileError if two nodes write one value.
  void require_one_output() const;
  // Computes the constants that depend on stored tensors alone, in the order of the file.
  void fold_constants();

  // Returns the node that writes a value; null for an input or a stored tensor.
  const Node* writer(const std::string& value) const;
  std::span<Node* const> readers(const std::string& value) const;
  // Returns the only node that reads the first output of a node; null if there are others, or the
  // network's output is read.
  const Node* only_reader(const Node& node) const;
  const OnnxConstant* constant(const Node& node, int index) const;  // null: the input is none

  // Returns the nodes that the output depends on. A node comes behind the nodes that write its
  // inputs. From then on readers() has these nodes alone, and constants() has what depends on
  // stored tensors alone. Throws FileError for a cycle.
  std::vector<const Node*> sort();

 private:
  OnnxFile& file_;
  OnnxConstants constants_;
  std::map<std::string, Node*, std::less<>> writers_;
  std::map<std::string, std::vector<Node*>, std::less<>> readers_;
  std::string output_;
  std::string written_twice_;  // a value; "" if there is none
};

// Whether a node has an input. An absent one may be empty.
bool has_input(const proto::onnx::NodeProto& node, int index);

}  // namespace syncopate
