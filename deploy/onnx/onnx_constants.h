// The values of an ONNX file that do not depend on the network's input. They are stored tensors, or
// computed from stored tensors by operators such as Shape, Concat and Expand. PyTorch writes shapes
// and biases of zeros as such computations.
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
  // The stored tensor; null if the constant was computed.
  const proto::onnx::TensorProto* stored = nullptr;
  bool is_transposed = false;  // true: the constant is the stored matrix with its axes exchanged
  // The name of the stored tensor of floats that has the elements; empty for a Constant node
  // and for constants that are computed from shapes.
  std::string source{};
  // The name of the Constant node of floats from which the elements come; empty if there is none.
  std::string constant_node{};
  // The elements come from the range [first, end) of the stored tensor or the Constant node.
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool is_in_order = true;  // true: the elements are all of [first, end), in the same order
  // The elements of a computed constant. NaN stands for the number of samples if the file does not
  // fix this number.
  std::vector<double> numbers;
};

// The element of a shape that stands for the number of samples if the file does not fix this
// number.
inline constexpr std::int64_t kSamples = std::numeric_limits<std::int64_t>::min();

// The most elements of a computed constant.
inline constexpr std::int64_t kMostFoldedElements = std::int64_t{1} << 16;

// A function that returns the shape of a value that is not constant, with -1 for a number of
// samples that is not fixed; nullopt if the shape is not known.
using OnnxShapeOf = std::function<std::optional<Shape>(const std::string&)>;

// Holds all constants of one ONNX file, which must outlive this object, and computes new constants
// from them. One thread only.
class OnnxConstants {
 public:
  explicit OnnxConstants(const OnnxFile& file);

  // Returns the constant with this name; null if the value is not constant.
  const OnnxConstant* find(const std::string& name) const;
  // Computes the output of a node and adds it to the constants. This is possible if all inputs are
  // constants that are not trained, or if the node only changes the shape of a constant that may be
  // trained. Otherwise, and for an unknown operator or an output of more than kMostFoldedElements
  // elements, returns false and changes nothing.
  bool fold(const proto::onnx::NodeProto& node, const OnnxShapeOf& shape_of);

  const OnnxFile& file() const noexcept { return file_; }
  const OnnxOrigins& origins() const { return origins_; }
  // Returns the origin of a constant input of a node; kFixed for a constant that does not come from
  // a stored tensor.
  OnnxOrigin origin(const proto::onnx::NodeProto& node, int index) const;
  // Like origin(), but for the weight, bias or norm of a layer, which may have the shape [1]. Only
  // a tensor without axes is therefore taken for a fixed number.
  OnnxOrigin origin_of_weight(const proto::onnx::NodeProto& node, int index) const;

  // Returns the elements of a constant of floats. Throws UsageError if an element is a number of
  // samples that is not fixed.
  std::vector<float> floats(const OnnxConstant& constant) const;
  // Returns the elements of a constant; nullopt if it has more than kMostFoldedElements elements.
  std::optional<std::vector<double>> numbers(const OnnxConstant& constant) const;
  // Returns the elements of the constant `name`; nullopt if it is not a constant of integers, or if
  // an element is a number of samples that is not fixed.
  std::optional<std::vector<std::int64_t>> integers(const std::string& name) const;
  // Like integers(), but for a shape. An element of a shape may be kSamples.
  std::optional<std::vector<std::int64_t>> sides(const std::string& name) const;
  // Returns the number in a constant of one element; nullopt for other values, and for a number of
  // samples that is not fixed.
  std::optional<double> number(const std::string& name) const;
  // Whether the constant `name` has an element that is a number of samples that is not fixed.
  bool has_samples(const std::string& name) const;

 private:
  const OnnxConstant* input(const proto::onnx::NodeProto& node, int index) const;

  const OnnxFile& file_;
  OnnxOrigins origins_;
  std::map<std::string, OnnxConstant, std::less<>> constants_;
  std::int64_t num_folded_ = 0;  // number of elements of all computed constants
};

// Computes the output of a node from constants; nullopt if that is not possible. Used by
// OnnxConstants::fold().
std::optional<OnnxConstant> folded_node(const OnnxConstants& constants,
                                        const proto::onnx::NodeProto& node,
                                        const OnnxShapeOf& shape_of);

// Returns the transpose of a matrix of `rows` rows.
std::vector<float> exchanged_axes(const std::vector<float>& values, std::size_t rows,
                                  std::size_t columns);

}  // namespace syncopate
