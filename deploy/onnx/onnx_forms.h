// The values of an ONNX file as the graph has them: the axes that they have in the file and their
// order in memory.
//
// The graph keeps maps in the order H, W, C whatever order the file has: a Transpose between the
// orders of the channels is another OnnxForm of the same node. An operator that needs the file's
// order in memory gets it from in_order().
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
  // The sides H, W, C of the map that the vector was, if its elements have the order H, W, C in the
  // ONNX file, as in networks of Keras, and dense layers read it; empty otherwise.
  Shape channels_last{};
  // Whether the vector was a map with the order C, H, W in the ONNX file.
  bool was_channels_first = false;
  bool is_positive = false;  // no element is below 0: the output of an activation
  // What the file has done with the map before and the graph has not yet: how often each row was
  // repeated, and the zeros around it. The next node takes them over.
  int repeated_rows = 1;
  Padding pad{};

  bool is_pending() const { return repeated_rows != 1 || pad != 0; }
};

// Adds the nodes that bring values into another form. One thread only.
class OnnxForms {
 public:
  // batch: the fixed number of samples; -1 if it is not fixed. All arguments outlive the object.
  OnnxForms(const OnnxGraph& graph, GraphBuilder& build, std::int64_t batch)
      : graph_(graph), build_(build), batch_(batch) {}

  std::int64_t batch() const noexcept { return batch_; }
  // Returns the sides of one sample in memory.
  const Shape& map_of(const OnnxValue& value) const { return build_.shape(value.node); }
  // Returns the shape in the ONNX file, with batch() in front.
  Shape shape_of(const OnnxValue& value) const;
  std::string shown_shape(const OnnxValue& value) const;  // such as "[N, 3, 32, 32]"

  // Returns the value with its elements in memory in the order of the ONNX file: kVector, kRows or
  // kChannelsLast.
  OnnxValue in_order(const OnnxValue& x);
  // Returns the value as a map [N, C, H, W] of the file, kChannelsFirst, for the operators that
  // take those. Throws UsageError for one that is none.
  OnnxValue as_map(const OnnxValue& x);
  // Returns the value with an axis of the ONNX file last in memory. Throws UsageError for other
  // axes than 1 and the last.
  OnnxValue with_channels(const OnnxValue& x, std::int64_t axis);
  // Returns the value with its axes in this order. Throws UsageError for one that moves N.
  OnnxValue transposed(const OnnxValue& x, const std::vector<std::int64_t>& order);
  // Returns the output of a node that makes a vector of a value.
  OnnxValue flattened(const proto::onnx::NodeProto& node, const OnnxValue& x);
  // Returns the output of a node that gives a value other sides. target: all sides but the number
  // of samples; -1 for one that follows from the others. Throws UsageError for a number of elements
  // that differs.
  OnnxValue reshaped(const proto::onnx::NodeProto& node, const OnnxValue& x, Shape target);

 private:
  OnnxValue with_shape(const OnnxValue& x, Shape shape, OnnxForm form);
  // Whether only dense layers read the output of a node, at most behind operators that work on each
  // element.
  bool is_read_by_dense_layers(const proto::onnx::NodeProto& node) const;

  const OnnxGraph& graph_;
  GraphBuilder& build_;
  std::int64_t batch_;
};

// Returns the axis in the ONNX file that is the last one in memory; none for a plane.
std::optional<std::int64_t> channel_axis(OnnxForm form);
// Returns the index 0 to rank - 1 of an axis that may count from the end.
std::int64_t axis_of(std::int64_t axis, std::size_t rank);

}  // namespace syncopate
