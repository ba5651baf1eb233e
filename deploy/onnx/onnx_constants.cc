#include "deploy/onnx/onnx_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::int64_t kMostFoldedTogether = std::int64_t{1} << 24;  // elements of all constants

bool has_nan(const std::vector<double>& numbers) {
  return std::ranges::any_of(numbers, [](double number) { return std::isnan(number); });
}

}  // namespace

OnnxConstants::OnnxConstants(const OnnxFile& file) : file_(file), origins_(file) {
  for (const auto& tensor : file.graph().initializer()) {
    const auto [at, is_new] = constants_.try_emplace(tensor.name());
    if (!is_new) {
      file.damaged(fmt::format("two tensors have the name {}; expected one of each name",
                               shown_name(tensor.name())));
    }
    at->second = {
        .shape = file.shape_of(tensor), .is_float = OnnxFile::is_float(tensor), .stored = &tensor};
    if (at->second.is_float) at->second.source = tensor.name();
    at->second.end = num_elements(at->second.shape);
  }
}

const OnnxConstant* OnnxConstants::find(const std::string& name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &found->second;
}

const OnnxConstant* OnnxConstants::input(const NodeProto& node, int index) const {
  return index < node.input_size() ? find(node.input(index)) : nullptr;
}

OnnxOrigin OnnxConstants::origin(const NodeProto& node, int index) const {
  const OnnxConstant* constant = input(node, index);
  if (constant == nullptr || constant->source.empty()) return OnnxOrigin::kFixed;
  return origins_.of(node, constant->source, num_elements(constant->shape) == 1);
}

OnnxOrigin OnnxConstants::origin_of_weight(const NodeProto& node, int index) const {
  const OnnxConstant* constant = input(node, index);
  if (constant == nullptr || constant->source.empty()) return OnnxOrigin::kFixed;
  return origins_.of(node, constant->source, constant->shape.empty());
}

std::vector<float> OnnxConstants::floats(const OnnxConstant& constant) const {
  if (constant.stored == nullptr) {
    if (has_nan(constant.numbers)) {
      throw UsageError("with the number of samples, which is not fixed, as a weight");
    }
    return {constant.numbers.begin(), constant.numbers.end()};
  }
  std::vector<float> stored = file_.read_floats(*constant.stored);
  if (!constant.is_transposed) return stored;
  return exchanged_axes(stored, static_cast<std::size_t>(constant.shape[1]),
                        static_cast<std::size_t>(constant.shape[0]));
}

std::optional<std::vector<double>> OnnxConstants::numbers(const OnnxConstant& constant) const {
  if (constant.stored == nullptr) return constant.numbers;
  if (num_elements(constant.shape) > kMostFoldedElements) return std::nullopt;
  if (constant.is_float) {
    const std::vector<float> values = floats(constant);
    return std::vector<double>(values.begin(), values.end());
  }
  if (!OnnxFile::is_integer(*constant.stored)) return std::nullopt;
  const std::vector<std::int64_t> values = file_.read_integers(*constant.stored);
  return std::vector<double>(values.begin(), values.end());
}

std::optional<std::vector<std::int64_t>> OnnxConstants::integers(const std::string& name) const {
  auto whole = sides(name);
  if (whole && std::ranges::find(*whole, kSamples) != whole->end()) return std::nullopt;
  return whole;
}

std::optional<std::vector<std::int64_t>> OnnxConstants::sides(const std::string& name) const {
  const OnnxConstant* constant = find(name);
  if (constant == nullptr || constant->is_float) return std::nullopt;
  const auto values = numbers(*constant);
  if (!values) return std::nullopt;
  std::vector<std::int64_t> whole;
  for (const double value : *values) {
    constexpr double kMost = 9e15;  // whole numbers up to here are exact
    whole.push_back(
        std::isnan(value) ? kSamples : static_cast<std::int64_t>(std::clamp(value, -kMost, kMost)));
  }
  return whole;
}

std::optional<double> OnnxConstants::number(const std::string& name) const {
  const OnnxConstant* constant = find(name);
  if (constant == nullptr || num_elements(constant->shape) != 1) return std::nullopt;
  const auto values = numbers(*constant);
  return values && !std::isnan(values->front()) ? std::optional(values->front()) : std::nullopt;
}

bool OnnxConstants::has_samples(const std::string& name) const {
  const OnnxConstant* constant = find(name);
  return constant != nullptr && has_nan(constant->numbers);
}

bool OnnxConstants::fold(const NodeProto& node, const OnnxShapeOf& shape_of) {
  if (node.output_size() != 1 || (!node.domain().empty() && node.domain() != "ai.onnx")) {
    return false;
  }
  auto folded = folded_node(*this, node, shape_of);
  if (!folded) return false;
  num_folded_ += static_cast<std::int64_t>(folded->numbers.size());
  if (num_folded_ > kMostFoldedTogether) {
    file_.damaged("computed constants have too many elements; expected those of a network");
  }
  constants_[node.output(0)] = *std::move(folded);
  return true;
}

std::vector<float> exchanged_axes(const std::vector<float>& values, std::size_t rows,
                                  std::size_t columns) {
  std::vector<float> other(values.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      other[column * rows + row] = values[row * columns + column];
    }
  }
  return other;
}

}  // namespace syncopate
