#include "deploy/onnx/onnx_forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {

Shape OnnxForms::shape_of(const OnnxValue& value) const {
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

std::optional<std::int64_t> channel_axis(OnnxForm form) {
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

std::string OnnxForms::shown_shape(const OnnxValue& value) const {
  const Shape shape = shape_of(value);
  return fmt::format("[N, {}]", fmt::join(shape.begin() + 1, shape.end(), ", "));
}

std::int64_t axis_of(std::int64_t axis, std::size_t rank) {
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

OnnxValue OnnxForms::with_shape(const OnnxValue& x, Shape shape, OnnxForm form) {
  const bool is_alike = map_of(x) == shape;
  return {.node = is_alike ? x.node : build_.reshape(x.node, std::move(shape)), .form = form};
}

OnnxValue OnnxForms::in_order(const OnnxValue& x) {
  const Shape map = map_of(x);
  const Shape sides = shape_of(x);
  switch (x.form) {
    case OnnxForm::kVector:
    case OnnxForm::kRows:
    case OnnxForm::kChannelsLast:
      return x;
    case OnnxForm::kPixelFirst:
    case OnnxForm::kPixelLast:
      return with_shape(x, {sides[1], sides[2], sides[3]}, OnnxForm::kChannelsLast);
    case OnnxForm::kPlane:
      return with_shape(x, {1, map[0], map[1]}, OnnxForm::kRows);
    case OnnxForm::kColumns:
      return {.node = build_.transpose(x.node, {0, 2, 1}), .form = OnnxForm::kRows};
    case OnnxForm::kChannelsFirst:
      break;
  }
  if (map[2] == 1 || map[0] * map[1] == 1) {
    return with_shape(x, {sides[1], sides[2], sides[3]}, OnnxForm::kChannelsLast);
  }
  return {.node = build_.transpose(x.node, {2, 0, 1}), .form = OnnxForm::kChannelsLast};
}

OnnxValue OnnxForms::as_map(const OnnxValue& x) {
  if (x.form == OnnxForm::kChannelsFirst && x.repeated_rows == 1) return x;
  if (x.form == OnnxForm::kPixelFirst) {
    return with_shape(x, {1, 1, map_of(x)[0]}, OnnxForm::kChannelsFirst);
  }
  if (x.form == OnnxForm::kChannelsLast && !x.is_pending()) {
    return {.node = build_.transpose(x.node, {1, 2, 0}), .form = OnnxForm::kChannelsFirst};
  }
  throw UsageError(fmt::format("of {}; expected a map [N, C, H, W]", shown_shape(x)));
}

OnnxValue OnnxForms::with_channels(const OnnxValue& x, std::int64_t axis) {
  if (channel_axis(x.form) == axis) return x;
  const OnnxValue ordered = in_order(x);
  if (channel_axis(ordered.form) == axis) return ordered;
  if (axis == 1 && ordered.form == OnnxForm::kChannelsLast) return as_map(ordered);
  if (axis == 1 && ordered.form == OnnxForm::kRows) {
    return {.node = build_.transpose(ordered.node, {0, 2, 1}), .form = OnnxForm::kColumns};
  }
  throw UsageError(fmt::format("over axis {} of {}; expected the channels or the last axis", axis,
                               shown_shape(x)));
}

OnnxValue OnnxForms::transposed(const OnnxValue& x, const std::vector<std::int64_t>& order) {
  const std::size_t rank = shape_of(x).size();
  std::vector<std::int64_t> sorted = order;
  std::ranges::sort(sorted);
  const bool is_order = sorted.size() == rank &&
                        std::ranges::adjacent_find(sorted) == sorted.end() && sorted.front() == 0 &&
                        sorted.back() + 1 == static_cast<std::int64_t>(rank);
  if (!is_order || order[0] != 0 || rank < 3 || x.is_pending()) {
    throw UsageError(fmt::format("of {} to the order {}", shown_shape(x), fmt::join(order, ", ")));
  }
  OnnxValue result = in_order(x);
  // [N, W, C] is a map of one row. Its axes are counted from 0.
  if (rank == 3) {
    result.node = build_.transpose(result.node, {0, 2, 1});
    return result;
  }
  std::array<int, 3> axes{};
  for (std::size_t i = 0; i < 3; ++i) axes[i] = static_cast<int>(order[i + 1]) - 1;
  result.node = build_.transpose(result.node, axes);
  return result;
}

bool OnnxForms::is_read_by_dense_layers(const proto::onnx::NodeProto& node) const {
  constexpr std::array kOnElements = {
      "Relu",      "Sigmoid", "Tanh",    "Gelu",     "Silu", "HardSwish",          "HardSigmoid",
      "LeakyRelu", "Clip",    "Dropout", "Identity", "Cast", "LayerNormalization", "Add",
      "Sub",       "Mul",     "Div"};
  std::vector<std::string> open = {node.output(0)};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string vector = open.back();
    open.pop_back();
    if (!seen.insert(vector).second) continue;
    if (vector == graph_.output()) return false;
    for (const auto* reader : graph_.readers(vector)) {
      const std::string& op = reader->op_type();
      if (op == "Gemm" || op == "MatMul" || op == "Shape") continue;
      const auto is_other = [&](const std::string& input) {
        return input != vector && !input.empty() && graph_.constants().find(input) == nullptr;
      };
      if (std::ranges::find(kOnElements, op) == kOnElements.end() ||
          std::ranges::any_of(reader->input(), is_other) || reader->output_size() < 1) {
        return false;
      }
      open.push_back(reader->output(0));
    }
  }
  return true;
}

// A flatten keeps the order H, W, C of the map in memory, and the weights of the dense layers
// behind it are brought into that order. What else reads the vector gets it in the order of the
// file.
OnnxValue OnnxForms::flattened(const proto::onnx::NodeProto& node, const OnnxValue& x) {
  OnnxValue result = x;
  result.form = OnnxForm::kVector;
  const Shape map = map_of(x);
  if (map.size() != 3) return result;
  // Of one channel or one pixel both orders are the same.
  const bool has_one_order = map[2] == 1 || map[0] * map[1] == 1;
  if (!has_one_order && !is_read_by_dense_layers(node)) {
    return with_shape(in_order(x), {num_elements(map)}, OnnxForm::kVector);
  }
  result.node = build_.flatten(x.node);
  if (has_one_order) return result;
  result.was_channels_first = channel_axis(x.form) == 1;
  if (!result.was_channels_first) result.channels_last = map;
  return result;
}

OnnxValue OnnxForms::reshaped(const proto::onnx::NodeProto& node, const OnnxValue& x,
                              Shape target) {
  const Shape found = shape_of(x);
  const Shape sides(found.begin() + 1, found.end());
  if (target.empty()) {
    throw UsageError(
        fmt::format("of {} to [N]; expected that vectors stay [N, F]", shown_shape(x)));
  }
  const std::int64_t elements = num_elements(sides);
  const auto open = std::ranges::find(target, -1);
  std::int64_t known = 1;
  bool is_sound = true;
  for (auto side = target.begin(); side != target.end(); ++side) {
    if (side == open) continue;
    is_sound = is_sound && *side > 0 && !__builtin_mul_overflow(known, *side, &known);
  }
  if (is_sound && open != target.end()) {
    *open = elements / known;
    is_sound = *open * known == elements;
  }
  if (!is_sound || num_elements(target) != elements || x.is_pending() || target.size() > 3) {
    if (is_sound && target == sides) return x;
    throw UsageError(fmt::format("{}of {} to [N, {}]",
                                 node.op_type() == "Reshape" ? "" : "that is a Reshape ",
                                 shown_shape(x), fmt::format("{}", fmt::join(target, ", "))));
  }
  if (target == sides) return x;
  if (target == Shape{elements}) return flattened(node, x);
  const bool is_pixel = x.form == OnnxForm::kVector || x.form == OnnxForm::kPixelFirst ||
                        x.form == OnnxForm::kPixelLast;
  OnnxValue result = x;
  if (x.form == OnnxForm::kPlane && target == Shape{1, sides[0], sides[1]}) {
    result.form = OnnxForm::kChannelsFirst;
    return result;
  }
  if (is_pixel && x.channels_last.empty() && !x.was_channels_first) {
    if (target == Shape{elements, 1, 1}) result.form = OnnxForm::kPixelFirst;
    if (target == Shape{1, 1, elements}) result.form = OnnxForm::kPixelLast;
    if (result.form != x.form) return result;
  }
  // [N, C, H, W] and [N, C, H * W] have one order in memory.
  if (x.form == OnnxForm::kChannelsFirst && target == Shape{sides[0], sides[1] * sides[2]}) {
    return with_shape(x, {1, target[1], target[0]}, OnnxForm::kColumns);
  }
  if (x.form == OnnxForm::kColumns && target.size() == 3 && target[0] == sides[0]) {
    return with_shape(x, {target[1], target[2], target[0]}, OnnxForm::kChannelsFirst);
  }
  const OnnxValue ordered = in_order(x);
  if (target.size() == 2) return with_shape(ordered, {1, target[0], target[1]}, OnnxForm::kRows);
  return with_shape(ordered, std::move(target), OnnxForm::kChannelsLast);
}

}  // namespace syncopate
