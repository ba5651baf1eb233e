// The operators of ONNX that are known, each a row with the function that adds its nodes to the
// graph. Every file of operators has the rows of its own.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/onnx/onnx_attributes.h"
#include "deploy/onnx/onnx_forms.h"
#include "deploy/onnx/onnx_graph.h"
#include "deploy/onnx/onnx_layer_weights.h"
#include "models/graph/graph.h"

namespace syncopate {

// What has been read of a network. An operator takes the values of its inputs from it and sets the
// values of its outputs.
struct OnnxReading {
  using Node = proto::onnx::NodeProto;

  const OnnxGraph& graph;
  const OnnxConstants& constants;
  GraphBuilder& build;
  OnnxForms& forms;
  OnnxLayerWeights& weights;
  std::vector<std::string>& notes;  // for the user
  std::map<std::string, OnnxValue, std::less<>> values{};

  bool is_value(const Node& node, int index) const {
    return has_input(node, index) && values.contains(node.input(index));
  }
  // Returns an input that the network computes. Throws UsageError for a constant, and if something
  // is pending, which only a few operators take over.
  const OnnxValue& value(const Node& node, int index) const;
  // Returns an input, also with something pending.
  const OnnxValue& pending_value(const Node& node, int index) const;
  void set(const Node& node, OnnxValue result) { values[node.output(0)] = std::move(result); }
  // Sets the result to one with the form of an input.
  void set_like(const Node& node, const OnnxValue& from, NodeId id);
};

struct OnnxRow {
  std::string_view op;
  int inputs;                                // at least
  std::vector<std::string_view> attributes;  // that are known
  // Adds a node. Throws UsageError with what has no counterpart here.
  void (*add)(OnnxReading& net, const proto::onnx::NodeProto& node,
              const OnnxAttributes& attributes);
  // Refuses attributes that no operation has, whatever the shapes are; may be null.
  void (*check)(const OnnxAttributes&) = nullptr;
};

std::span<const OnnxRow> element_rows();  // that compute on each element, and Concat
std::span<const OnnxRow> layer_rows();    // with weights, and Dropout
std::span<const OnnxRow> window_rows();   // pools
std::span<const OnnxRow> shape_rows();    // that change sides and axes, or read along an axis
std::span<const OnnxRow> resize_rows();   // that enlarge maps

// Returns null for an operator that is not known.
const OnnxRow* find_onnx_row(std::string_view op);

}  // namespace syncopate
