// The inputs and outputs of the nodes of an ONNX file, and the shapes that they have there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "deploy/onnx/onnx_reader.h"
#include "models/base/errors.h"

namespace syncopate {

const OnnxValue& OnnxReader::value(const Node& node, int index) const {
  const OnnxValue& found = pending_value(node, index);
  if (found.pad != 0) {
    throw UsageError("of a map with a Pad; expected a convolution or a pool behind the Pad");
  }
  if (found.repeated_rows != 1) {
    throw UsageError("of a map with repeated rows; expected its columns to be repeated, too");
  }
  return found;
}

const OnnxValue& OnnxReader::pending_value(const Node& node, int index) const {
  const auto found = index < node.input_size() ? values_.find(node.input(index)) : values_.end();
  if (found == values_.end()) {
    throw UsageError(fmt::format("whose input {} is constant", index));
  }
  return found->second;
}

void OnnxReader::set_like(const Node& node, const OnnxValue& from, NodeId id) {
  OnnxValue result = from;
  result.node = id;
  result.is_positive = false;
  set(node, std::move(result));
}

bool OnnxReader::has_input(const Node& node, int index) {
  return index < node.input_size() && !node.input(index).empty();  // an absent one may be empty
}

bool OnnxReader::is_value(const Node& node, int index) const {
  return has_input(node, index) && values_.contains(node.input(index));
}

const OnnxConstant* OnnxReader::constant(const Node& node, int index) const {
  return has_input(node, index) ? constants_.find(node.input(index)) : nullptr;
}

Shape OnnxReader::shape_of(const OnnxValue& value) const {
  Shape shape = map_of(value);
  if (value.is_pending()) {
    shape[0] = shape[0] * value.repeated_rows + value.pad.rows();
    shape[1] += value.pad.columns();
  }
  switch (value.form) {
    case OnnxForm::kChannelsFirst:
      return {batch_, shape[2], shape[0], shape[1]};
    case OnnxForm::kChannelsLast:
      return {batch_, shape[0], shape[1], shape[2]};
    case OnnxForm::kPlane:
      return {batch_, shape[0], shape[1]};
    case OnnxForm::kRows:
      return {batch_, shape[1], shape[2]};
    case OnnxForm::kColumns:
      return {batch_, shape[2], shape[1]};
    case OnnxForm::kPixelFirst:
      return {batch_, shape[0], 1, 1};
    case OnnxForm::kPixelLast:
      return {batch_, 1, 1, shape[0]};
    case OnnxForm::kVector:
      break;
  }
  return {batch_, shape[0]};
}

std::optional<std::int64_t> OnnxReader::channel_axis(OnnxForm form) {
  switch (form) {
    case OnnxForm::kChannelsFirst:
    case OnnxForm::kColumns:
    case OnnxForm::kVector:
    case OnnxForm::kPixelFirst:
      return 1;
    case OnnxForm::kRows:
      return 2;
    case OnnxForm::kChannelsLast:
    case OnnxForm::kPixelLast:
      return 3;
    case OnnxForm::kPlane:
      break;
  }
  return std::nullopt;
}

std::string OnnxReader::shown_shape(const OnnxValue& value) const {
  const Shape shape = shape_of(value);
  return fmt::format("[N, {}]", fmt::join(shape.begin() + 1, shape.end(), ", "));
}

const proto::onnx::NodeProto* OnnxReader::only_reader(const Node& node) const {
  const auto readers = readers_.find(node.output(0));
  if (node.output(0) == output_ || readers == readers_.end() || readers->second.size() != 1) {
    return nullptr;
  }
  return readers->second.front();
}

std::int64_t OnnxReader::axis_of(std::int64_t axis, std::size_t rank) {
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

}  // namespace syncopate
