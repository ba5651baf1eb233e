// The table of supported ONNX operators. A row has the function that adds the nodes of the operator
// to the graph. Each .cc file with functions of operators also has the rows of these operators.
#pragma once

#include <cstdint>
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

// The state while a network is read from an ONNX file. The function of an operator (OnnxRow::add)
// takes the values of its inputs from here and stores the values of its outputs here.
struct OnnxReading {
  using Node = proto::onnx::NodeProto;

  const OnnxGraph& graph;
  const OnnxConstants& constants;
  GraphBuilder& build;
  OnnxForms& forms;
  OnnxLayerWeights& weights;
  std::vector<std::string>& notes;  // notes for the user
  std::map<std::string, OnnxValue, std::less<>> values{};

  bool is_value(const Node& node, int index) const {
    return has_input(node, index) && values.contains(node.input(index));
  }
  // Returns an input of a node. Throws UsageError for a constant, and for a value with pending
  // operations (OnnxValue::is_pending()), which most operators cannot include.
  const OnnxValue& value(const Node& node, int index) const;
  // Like value(), but the value may have pending operations.
  const OnnxValue& pending_value(const Node& node, int index) const;
  void set(const Node& node, OnnxValue result) { values[node.output(0)] = std::move(result); }
  // Sets the output of `node` to the graph's node `id`, with the form of `from`.
  void set_like(const Node& node, const OnnxValue& from, NodeId id);
};

struct OnnxRow {
  std::string_view op;
  int inputs;                   // the least number of inputs
  std::string_view attributes;  // the names of supported attributes, with blanks between
  // Adds nodes to the graph that compute what the ONNX node `node` computes. Throws UsageError with
  // a description of what has no counterpart in this program.
  void (*add)(OnnxReading& net, const proto::onnx::NodeProto& node,
              const OnnxAttributes& attributes);
  // Throws UsageError if an attribute has a value that is not supported for any shape. Null if the
  // operator has no such attribute.
  void (*check)(const OnnxAttributes&) = nullptr;

  bool supports(std::string_view attribute) const;
};

// Each of these functions returns some rows of the table of supported operators.
std::span<const OnnxRow> element_rows();  // operators on single elements, and Concat
std::span<const OnnxRow> layer_rows();    // operators with weights, and Dropout
std::span<const OnnxRow> window_rows();   // pools
std::span<const OnnxRow> shape_rows();    // operators that change sides or axes, or use one axis
std::span<const OnnxRow> resize_rows();   // operators that enlarge maps

// Returns the row of an operator such as "Conv" in the table of supported operators; null if the
// operator is not supported.
const OnnxRow* find_onnx_row(std::string_view op);

inline constexpr std::int64_t kLargestOnnxWindow = 1 << 7;

// Returns the common value of an attribute with two equal numbers, such as the strides; `otherwise`
// if the attribute is absent. Throws UsageError unless the attribute has two equal numbers from 1
// to kLargestOnnxWindow.
int one_size(const OnnxAttributes& attributes, std::string_view name, int otherwise);
// Throws UsageError unless all dilations are 1.
void refuse_dilation(const OnnxAttributes& attributes);
// Returns the padding of a convolution or a pool. map: the height and width of its input. Throws
// UsageError for an unknown value of auto_pad.
Padding onnx_padding(const OnnxAttributes& attributes, const Shape& map,
                     std::span<const std::int64_t> kernel, std::int64_t stride);

}  // namespace syncopate
