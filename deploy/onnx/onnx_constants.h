// The values of an ONNX file that do not depend on the network's input: stored tensors, and what
// operators such as Shape, Concat and Expand compute from them. PyTorch writes shapes and biases of
// zeros in this way.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "deploy/onnx/onnx_attributes.h"
#include "deploy/onnx/onnx_file.h"
#include "deploy/onnx/onnx_origins.h"

namespace syncopate {

struct OnnxConstant {
  Shape shape;
  bool is_float = true;
  const proto::onnx::TensorProto* stored = nullptr;  // null if it was computed
  bool is_transposed = false;                        // the stored matrix, with its axes exchanged
  // The stored tensor of floats that its elements come from; empty for a Constant node, and for
  // what is computed from shapes.
  std::string source{};
  // The Constant node of floats that its elements come from.
  std::string constant_node{};
  // Which elements of the stored tensor or the Constant node they are, at most.
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool is_in_order = true;  // they are these elements, in their order
  // If it was computed. NaN is the number of samples, where that is not fixed.
  std::vector<double> numbers;
};

// In a shape, the number of samples that is not fixed.
inline constexpr std::int64_t kSamples = std::numeric_limits<std::int64_t>::min();

inline constexpr std::int64_t kMostFoldedElements = std::int64_t{1} << 16;  // of one constant

// Returns the shape of a value that is not constant, with -1 for a number of samples that is not
// fixed; none if it is not known.
using OnnxShapeOf = std::function<std::optional<Shape>(const std::string&)>;

// One thread only. Lives as long as its file.
class OnnxConstants {
 public:
  explicit OnnxConstants(const OnnxFile& file);

  // Returns null for a value that is not constant.
  const OnnxConstant* find(const std::string& name) const;
  // Computes the output of a node if all its inputs are constants that are not trained, or changes
  // the shape of a constant that may be trained. Returns false, and changes nothing, for other
  // operators and for large outputs.
  bool fold(const proto::onnx::NodeProto& node, const OnnxShapeOf& shape_of);

  const OnnxFile& file() const noexcept { return file_; }
  const OnnxOrigins& origins() const { return origins_; }
  // Returns what an input of a node is. A constant without a stored tensor is fixed.
  OnnxOrigin origin(const proto::onnx::NodeProto& node, int index) const;
  // The same for a weight, bias or norm of a layer, where one number with an axis is no plain one.
  OnnxOrigin origin_of_weight(const proto::onnx::NodeProto& node, int index) const;

  // Throws UsageError for a number of samples that is not fixed.
  std::vector<float> floats(const OnnxConstant& constant) const;
  // Returns the elements of a constant that is small; none if it is not.
  std::optional<std::vector<double>> numbers(const OnnxConstant& constant) const;
  // Returns none if an element is a number of samples that is not fixed.
  std::optional<std::vector<std::int64_t>> integers(const std::string& name) const;
  // Returns the elements of a shape, which may be kSamples.
  std::optional<std::vector<std::int64_t>> sides(const std::string& name) const;
  // Returns the number that a constant of one element has; none for a number of samples that is
  // not fixed.
  std::optional<double> number(const std::string& name) const;
  // Whether an element of the constant is a number of samples that is not fixed.
  bool has_samples(const std::string& name) const;

 private:
  const OnnxConstant* input(const proto::onnx::NodeProto& node, int index) const;

  const OnnxFile& file_;
  OnnxOrigins origins_;
  std::map<std::string, OnnxConstant, std::less<>> constants_;
  std::int64_t num_folded_ = 0;  // elements of all computed constants
};

// Returns the output of a node that computes a constant, as OnnxConstants::fold() does.
std::optional<OnnxConstant> folded_node(const OnnxConstants& constants,
                                        const proto::onnx::NodeProto& node,
                                        const OnnxShapeOf& shape_of);

}  // namespace syncopate
