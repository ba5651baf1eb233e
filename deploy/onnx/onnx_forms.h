// Relates the values of an ONNX file to nodes of the graph: the axes that a value has in the file,
// and the order of its elements in memory.
//
// A map is an image or a feature map. The graph has the elements of maps in the order H, W, C,
// whatever order the file uses. A Transpose that only moves the channels therefore adds no node:
// its output is the same node with another OnnxForm. The code of an operator that needs the file's
// order in memory calls in_order().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "deploy/onnx/onnx_graph.h"
#include "models/graph/graph.h"

namespace syncopate {

// The shape that a value has in the ONNX file. N is the number of samples.
enum class OnnxForm : std::uint8_t {
  kChannelsFirst,  // a map, [N, C, H, W]
  kChannelsLast,   // a map, [N, H, W, C]
  kPlane,          // a map of one channel, [N, H, W]
  kRows,           // a map of one row, [N, W, C]
  kColumns,        // a map of one row, [N, C, W]
  kVector,         // a vector, [N, F]
  kPixelFirst,     // a vector, [N, C, 1, 1]
  kPixelLast,      // a vector, [N, 1, 1, C]
};

// A value of the ONNX file and the node that computes it.
struct OnnxValue {
  NodeId node = 0;
  OnnxForm form = OnnxForm::kVector;
  // For a vector made by flattening a map in the order H, W, C, as in networks of Keras: the sides
  // H, W, C of the map. Set only if dense layers read the vector; else empty.
  Shape channels_last{};
  // Whether the vector was made by flattening a map that has the order C, H, W in the ONNX file.
  bool was_channels_first = false;
  bool is_positive = false;  // whether no element is below 0, as after an activation such as Relu
  // Operations of the file that are not in the graph yet, because the node that reads the value
  // will include them: the number of times that each row is repeated, and the padding with zeros
  // around the map.
  int repeated_rows = 1;
  Padding pad{};

  bool is_pending() const { return repeated_rows != 1 || pad != 0; }
};

// Converts values to other forms by adding nodes to the graph. One thread only.
class OnnxForms {
 public:
  // batch: the number of samples that the file fixes; -1 if the file does not fix this number. All
  // arguments must outlive the object.
  OnnxForms(const OnnxGraph& graph, GraphBuilder& build, std::int64_t batch)
      : graph_(graph), build_(build), batch_(batch) {}

  std::int64_t batch() const noexcept { return batch_; }
  // Returns the shape of one sample in memory.
  const Shape& map_of(const OnnxValue& value) const { return build_.shape(value.node); }
  // Returns the shape of the value in the ONNX file. The first side is batch(); the others are the
  // sides of a sample in the file's order.
  Shape shape_of(const OnnxValue& value) const;
  // Returns the result of shape_of() as text, such as "[N, 3, 32, 32]".
  std::string shown_shape(const OnnxValue& value) const;

  // Returns the value with its elements in memory in the same order as in the ONNX file. The form
  // of the result is kVector, kRows or kChannelsLast.
  OnnxValue in_order(const OnnxValue& x);
  // Returns the value in the form kChannelsFirst, for operators that take a map [N, C, H, W] of the
  // file. Throws UsageError if the value is not a map.
  OnnxValue as_map(const OnnxValue& x);
  // Returns the value in the form that has axis number `axis` of the ONNX file as the last axis in
  // memory. If the value has another form, adds nodes to the graph that transpose or reshape it.
  // Throws UsageError unless `axis` is 1 or the last axis.
  OnnxValue with_channels(const OnnxValue& x, std::int64_t axis);
  // Returns the output of a Transpose: the value with its axes in the order `order`. Throws
  // UsageError if the order moves N.
  OnnxValue transposed(const OnnxValue& x, const std::vector<std::int64_t>& order);
  // Returns the output of a node that flattens a value to a vector.
  OnnxValue flattened(const proto::onnx::NodeProto& node, const OnnxValue& x);
  // Returns the output of a node that reshapes a value. target: the new sides without the number of
  // samples; one side may be -1 and then follows from the others. Throws UsageError if the number
  // of elements differs.
  OnnxValue reshaped(const proto::onnx::NodeProto& node, const OnnxValue& x, Shape target);

 private:
  OnnxValue with_shape(const OnnxValue& x, Shape shape, OnnxForm form);
  // Whether only dense layers read the output of a node, directly or after operators that work on
  // single elements.
  bool is_read_by_dense_layers(const proto::onnx::NodeProto& node) const;

  const OnnxGraph& graph_;
  GraphBuilder& build_;
  std::int64_t batch_;
};

// For a value of this form, returns which axis in the ONNX file is the last axis in memory; nullopt
// for kPlane.
std::optional<std::int64_t> channel_axis(OnnxForm form);
// Converts an axis that may be negative, counted from the end, to an index from 0 to rank - 1.
std::int64_t axis_of(std::int64_t axis, std::size_t rank);

}  // namespace syncopate
