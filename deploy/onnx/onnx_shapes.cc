// The operators of ONNX that change the sides and axes of values, or read values along an axis.
//
// The graph keeps maps in the order H, W, C whatever order the file has: a Transpose between the
// orders of the channels is another OnnxForm of the same node. An operator that needs the file's
// order in memory gets it from in_order().
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "deploy/onnx/onnx_reader.h"
#include "models/base/errors.h"

namespace syncopate {

OnnxValue OnnxReader::with_shape(const OnnxValue& x, Shape shape, OnnxForm form) {
  const bool is_alike = map_of(x) == shape;
  return {.node = is_alike ? x.node : build_.reshape(x.node, std::move(shape)), .form = form};
}

OnnxValue OnnxReader::in_order(const OnnxValue& x) {
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

OnnxValue OnnxReader::as_map(const OnnxValue& x) {
  if (x.form == OnnxForm::kChannelsFirst && x.repeated_rows == 1) return x;
  if (x.form == OnnxForm::kPixelFirst) {
    return with_shape(x, {1, 1, map_of(x)[0]}, OnnxForm::kChannelsFirst);
  }
  if (x.form == OnnxForm::kChannelsLast && !x.is_pending()) {
    return {.node = build_.transpose(x.node, {1, 2, 0}), .form = OnnxForm::kChannelsFirst};
  }
  throw UsageError(fmt::format("of {}; expected a map [N, C, H, W]", shown_shape(x)));
}

OnnxValue OnnxReader::with_channels(const OnnxValue& x, std::int64_t axis) {
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

bool OnnxReader::is_read_by_dense_layers(const Node& node) const {
  constexpr std::array kOnElements = {"Relu",    "Sigmoid",   "Tanh",        "Gelu",
                                      "Silu",    "HardSwish", "HardSigmoid", "Clip",
                                      "Dropout", "Identity",  "Cast",        "LayerNormalization",
                                      "Add",     "Sub",       "Mul",         "Div"};
  std::vector<std::string> open = {node.output(0)};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string vector = open.back();
    open.pop_back();
    if (!seen.insert(vector).second) continue;
    if (vector == output_) return false;
    const auto readers = readers_.find(vector);
    if (readers == readers_.end()) continue;
    for (const Node* reader : readers->second) {
      const std::string& op = reader->op_type();
      if (op == "Gemm" || op == "MatMul" || op == "Shape") continue;
      const auto is_other = [&](const std::string& input) {
        return input != vector && !input.empty() && constants_.find(input) == nullptr;
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
OnnxValue OnnxReader::flattened(const Node& node, const OnnxValue& x) {
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

void OnnxReader::add_flatten(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  if (axis_of(attributes.integer("axis", 1), shape_of(x).size()) != 1) {
    throw UsageError(fmt::format("from axis {}", attributes.integer("axis", 1)));
  }
  set(node, flattened(node, x));
}

// target: all sides but the number of samples; -1 for one that follows from the others.
OnnxValue OnnxReader::reshaped(const Node& node, const OnnxValue& x, Shape target) {
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

void OnnxReader::add_reshape(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = pending_value(node, 0);
  const auto target = constants_.sides(node.input(1));
  if (!target || target->empty()) {
    throw UsageError("to a shape that is computed from the input");
  }
  const Shape found = shape_of(x);
  Shape sides = *target;
  const bool copies_zeros = attributes.integer("allowzero", 0) == 0;
  for (std::size_t i = 0; copies_zeros && i < sides.size() && i < found.size(); ++i) {
    if (sides[i] == 0 && i > 0) sides[i] = found[i];
  }
  if (std::ranges::count(sides, kSamples) > (sides[0] == kSamples ? 1 : 0)) {
    throw UsageError("to a shape whose first side is not the number of samples");
  }
  // The first side is the number of samples: 0, the number that is fixed or not, or -1, the one
  // that follows from the other sides.
  const bool keeps_samples = sides[0] == -1 || sides[0] == kSamples ||
                             (sides[0] == 0 && copies_zeros) || sides[0] == batch_;
  if (!keeps_samples) throw UsageError(fmt::format("to [{}]", fmt::join(sides, ", ")));
  const bool is_open = sides[0] == -1;
  sides.erase(sides.begin());
  if (is_open && std::ranges::find(sides, -1) != sides.end()) throw UsageError("to two open sides");
  set(node, reshaped(node, x, std::move(sides)));
}

void OnnxReader::add_squeeze(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = value(node, 0);
  const Shape found = shape_of(x);
  std::vector<std::int64_t> axes = {};
  if (has_input(node, 1)) axes = constants_.integers(node.input(1)).value_or(axes);
  for (std::int64_t& axis : axes) axis = axis_of(axis, found.size());
  Shape sides;
  for (std::size_t i = 1; i < found.size(); ++i) {
    const bool is_named = std::ranges::find(axes, static_cast<std::int64_t>(i)) != axes.end();
    if (is_named && found[i] != 1) throw UsageError("of a side that is not 1");
    if (!is_named) sides.push_back(found[i]);
  }
  if (axes.empty()) throw UsageError("without constant axes");
  for (const std::int64_t axis : axes) {
    if (axis < 1 || axis >= static_cast<std::int64_t>(found.size())) {
      throw UsageError(fmt::format("of axis {} of {}", axis, shown_shape(x)));
    }
  }
  set(node, reshaped(node, x, std::move(sides)));
}

void OnnxReader::add_unsqueeze(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = value(node, 0);
  Shape sides = shape_of(x);
  auto axes = constants_.integers(node.input(1));
  if (!axes || axes->empty() || axes->size() > 4) throw UsageError("without constant axes");
  for (std::int64_t& axis : *axes) axis = axis_of(axis, sides.size() + axes->size());
  std::ranges::sort(*axes);
  if (std::ranges::adjacent_find(*axes) != axes->end()) throw UsageError("with an axis twice");
  for (const std::int64_t axis : *axes) {
    if (axis < 1 || axis > static_cast<std::int64_t>(sides.size())) {
      throw UsageError(fmt::format("at axis {}", axis));
    }
    sides.insert(sides.begin() + axis, 1);
  }
  set(node, reshaped(node, x, Shape(sides.begin() + 1, sides.end())));
}

void OnnxReader::add_transpose(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = pending_value(node, 0);
  std::vector<std::int64_t> order = attributes.integers("perm");
  const std::size_t rank = shape_of(x).size();
  std::vector<std::int64_t> same(rank);
  std::iota(same.begin(), same.end(), 0);
  if (!attributes.has("perm")) order.assign(same.rbegin(), same.rend());
  OnnxValue result = x;
  const bool to_last = order == std::vector<std::int64_t>{0, 2, 3, 1};
  const bool to_first = order == std::vector<std::int64_t>{0, 3, 1, 2};
  if (to_last && x.form == OnnxForm::kChannelsFirst) {
    result.form = OnnxForm::kChannelsLast;
  } else if (to_first && x.form == OnnxForm::kChannelsLast) {
    result.form = OnnxForm::kChannelsFirst;
  } else if (to_last && x.form == OnnxForm::kPixelFirst) {
    result.form = OnnxForm::kPixelLast;
  } else if (to_first && x.form == OnnxForm::kPixelLast) {
    result.form = OnnxForm::kPixelFirst;
  } else if (order == std::vector<std::int64_t>{0, 2, 1} && x.form == OnnxForm::kRows) {
    result.form = OnnxForm::kColumns;
  } else if (order == std::vector<std::int64_t>{0, 2, 1} && x.form == OnnxForm::kColumns) {
    result.form = OnnxForm::kRows;
  } else if (order != same) {
    result = transposed(x, order);
  }
  set(node, std::move(result));
}

OnnxValue OnnxReader::transposed(const OnnxValue& x, const std::vector<std::int64_t>& order) {
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
  // [N, W, C] is a map of one row, whose axes are counted from 0.
  if (rank == 3) {
    result.node = build_.transpose(result.node, {0, 2, 1});
    return result;
  }
  std::array<int, 3> axes{};
  for (std::size_t i = 0; i < 3; ++i) axes[i] = static_cast<int>(order[i + 1]) - 1;
  result.node = build_.transpose(result.node, axes);
  return result;
}

void OnnxReader::add_channels(const Node& node, int output, const OnnxValue& x, std::int64_t axis,
                              std::int64_t first, std::int64_t end) {
  OnnxValue part = with_channels(x, axis);
  const std::int64_t channels = map_of(part).back();
  first = std::clamp<std::int64_t>(first < 0 ? first + channels : first, 0, channels);
  end = std::clamp<std::int64_t>(end < 0 ? end + channels : end, first, channels);
  if (end - first != channels) {
    part.node = build_.slice(part.node, static_cast<int>(first), static_cast<int>(end - first));
  }
  values_[node.output(output)] = std::move(part);
}

void OnnxReader::add_slice(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = value(node, 0);
  const auto only = [&](int index, std::int64_t otherwise) {
    if (!has_input(node, index)) return otherwise;
    const auto numbers = constants_.integers(node.input(index));
    if (!numbers || numbers->size() != 1) throw UsageError("over several axes, or not constant");
    return numbers->front();
  };
  if (only(4, 1) != 1) throw UsageError("with a step");
  add_channels(node, 0, x, axis_of(only(3, 0), shape_of(x).size()), only(1, 0), only(2, 0));
}

void OnnxReader::add_split(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue x = value(node, 0);
  const Shape sides = shape_of(x);
  const std::int64_t axis = axis_of(attributes.integer("axis", 0), sides.size());
  if (axis < 1 || axis >= static_cast<std::int64_t>(sides.size())) {
    throw UsageError(fmt::format("over axis {} of {}", axis, shown_shape(x)));
  }
  const std::int64_t channels = sides[static_cast<std::size_t>(axis)];
  const std::int64_t count = node.output_size();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), (channels + count - 1) / count);
  if (has_input(node, 1)) sizes = constants_.integers(node.input(1)).value_or(Shape{});
  if (static_cast<std::int64_t>(sizes.size()) != count) throw UsageError("by sizes not constant");
  std::int64_t first = 0;
  for (int i = 0; i < node.output_size(); ++i) {
    const std::int64_t size = sizes[static_cast<std::size_t>(i)];
    if (size < 1 || first >= channels || size > channels) throw UsageError("by these sizes");
    const std::string& part = node.output(i);
    if (part == output_ || readers_.contains(part)) {
      add_channels(node, i, x, axis, first, std::min(first + size, channels));
    }
    first += size;
  }
  if (has_input(node, 1) && first != channels) throw UsageError("by these sizes");
}

void OnnxReader::add_part(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  const Shape sides = shape_of(x);
  const std::int64_t axis = axis_of(attributes.integer("axis", 0), sides.size());
  const std::int64_t size = attributes.integer("size", 0);
  const std::int64_t index = attributes.integer("index", 0);
  const bool is_axis = axis >= 1 && axis < static_cast<std::int64_t>(sides.size());
  const std::int64_t channels = is_axis ? sides[static_cast<std::size_t>(axis)] : 0;
  if (size < 1 || size > channels || index < 0 || index > (channels - 1) / size) {
    throw UsageError(
        fmt::format("of part {} of {} along axis {} of {}", index, size, axis, shown_shape(x)));
  }
  add_channels(node, 0, x, axis, index * size, std::min((index + 1) * size, channels));
}

void OnnxReader::add_softmax(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  const OnnxValue ordered =
      with_channels(x, axis_of(attributes.integer("axis", -1), shape_of(x).size()));
  set_like(node, ordered, build_.softmax(ordered.node));
}

void OnnxReader::add_reduce_mean(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  const Shape sides = shape_of(x);
  std::vector<std::int64_t> axes = attributes.integers("axes");
  if (has_input(node, 1)) axes = constants_.integers(node.input(1)).value_or(axes);
  for (std::int64_t& axis : axes) axis = axis_of(axis, sides.size());
  std::ranges::sort(axes);
  const bool keeps = attributes.integer("keepdims", 1) != 0;
  const bool is_of_first = x.form == OnnxForm::kChannelsFirst && axes == Shape{2, 3};
  const bool is_of_last = x.form == OnnxForm::kChannelsLast && axes == Shape{1, 2};
  const bool is_of_rows = x.form == OnnxForm::kRows && axes == Shape{1} && !keeps;
  if (is_of_first || is_of_last || is_of_rows) {
    const OnnxForm pixel = is_of_first ? OnnxForm::kPixelFirst : OnnxForm::kPixelLast;
    return set(node, {.node = build_.global_average_pool(x.node),
                      .form = keeps ? pixel : OnnxForm::kVector});
  }
  const auto is_inside = [&](std::int64_t axis) {
    return axis > 0 && axis < static_cast<std::int64_t>(sides.size());
  };
  if (axes.empty() || !std::ranges::all_of(axes, is_inside) || x.form == OnnxForm::kVector) {
    throw UsageError(fmt::format("over the axes {} of {}; expected axes of a map",
                                 fmt::join(axes, ", "), shown_shape(x)));
  }
  OnnxValue result = in_order(x);
  const int first = result.form == OnnxForm::kRows ? 0 : -1;  // the axis of memory of N
  std::vector<int> of_memory;
  Shape left;
  for (std::size_t i = 1; i < sides.size(); ++i) {
    if (std::ranges::find(axes, static_cast<std::int64_t>(i)) != axes.end()) {
      of_memory.push_back(static_cast<int>(i) + first);
    } else {
      left.push_back(sides[i]);
    }
  }
  result.node = build_.reduce_mean(result.node, of_memory);
  result.is_positive = false;
  if (left.empty()) left = {1};
  set(node, keeps ? result : reshaped(node, result, left));
}

}  // namespace syncopate
