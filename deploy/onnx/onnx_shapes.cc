// The operators of ONNX that change the sides and axes of values, or read values along an axis.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "deploy/onnx/onnx_operators.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

void add_flatten(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.value(node, 0);
  if (axis_of(attributes.integer("axis", 1), net.forms.shape_of(x).size()) != 1) {
    throw UsageError(fmt::format("from axis {}", attributes.integer("axis", 1)));
  }
  net.set(node, net.forms.flattened(node, x));
}

void add_reshape(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.pending_value(node, 0);
  const auto target = net.constants.sides(node.input(1));
  if (!target || target->empty()) {
    throw UsageError("to a shape that is computed from the input");
  }
  const Shape found = net.forms.shape_of(x);
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
                             (sides[0] == 0 && copies_zeros) || sides[0] == net.forms.batch();
  if (!keeps_samples) throw UsageError(fmt::format("to [{}]", fmt::join(sides, ", ")));
  const bool is_open = sides[0] == -1;
  sides.erase(sides.begin());
  if (is_open && std::ranges::find(sides, -1) != sides.end()) throw UsageError("to two open sides");
  net.set(node, net.forms.reshaped(node, x, std::move(sides)));
}

void add_squeeze(OnnxReading& net, const NodeProto& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = net.value(node, 0);
  const Shape found = net.forms.shape_of(x);
  std::vector<std::int64_t> axes = {};
  if (has_input(node, 1)) axes = net.constants.integers(node.input(1)).value_or(axes);
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
      throw UsageError(fmt::format("of axis {} of {}", axis, net.forms.shown_shape(x)));
    }
  }
  net.set(node, net.forms.reshaped(node, x, std::move(sides)));
}

void add_unsqueeze(OnnxReading& net, const NodeProto& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = net.value(node, 0);
  Shape sides = net.forms.shape_of(x);
  auto axes = net.constants.integers(node.input(1));
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
  net.set(node, net.forms.reshaped(node, x, Shape(sides.begin() + 1, sides.end())));
}

void add_transpose(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.pending_value(node, 0);
  std::vector<std::int64_t> order = attributes.integers("perm");
  const std::size_t rank = net.forms.shape_of(x).size();
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
    result = net.forms.transposed(x, order);
  }
  net.set(node, std::move(result));
}

// Takes channels `first` to `end` of an axis that counts channels, as one output of the node.
void add_channels(OnnxReading& net, const NodeProto& node, int output, const OnnxValue& x,
                  std::int64_t axis, std::int64_t first, std::int64_t end) {
  OnnxValue part = net.forms.with_channels(x, axis);
  const std::int64_t channels = net.forms.map_of(part).back();
  first = std::clamp<std::int64_t>(first < 0 ? first + channels : first, 0, channels);
  end = std::clamp<std::int64_t>(end < 0 ? end + channels : end, first, channels);
  if (end - first != channels) {
    part.node = net.build.slice(part.node, static_cast<int>(first), static_cast<int>(end - first));
  }
  net.values[node.output(output)] = std::move(part);
}

void add_slice(OnnxReading& net, const NodeProto& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = net.value(node, 0);
  const auto only = [&](int index, std::int64_t otherwise) {
    if (!has_input(node, index)) return otherwise;
    const auto numbers = net.constants.integers(node.input(index));
    if (!numbers || numbers->size() != 1) throw UsageError("over several axes, or not constant");
    return numbers->front();
  };
  if (only(4, 1) != 1) throw UsageError("with a step");
  add_channels(net, node, 0, x, axis_of(only(3, 0), net.forms.shape_of(x).size()), only(1, 0),
               only(2, 0));
}

void add_split(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue x = net.value(node, 0);
  const Shape sides = net.forms.shape_of(x);
  const std::int64_t axis = axis_of(attributes.integer("axis", 0), sides.size());
  if (axis < 1 || axis >= static_cast<std::int64_t>(sides.size())) {
    throw UsageError(fmt::format("over axis {} of {}", axis, net.forms.shown_shape(x)));
  }
  const std::int64_t channels = sides[static_cast<std::size_t>(axis)];
  const std::int64_t count = node.output_size();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), (channels + count - 1) / count);
  if (has_input(node, 1)) sizes = net.constants.integers(node.input(1)).value_or(Shape{});
  if (static_cast<std::int64_t>(sizes.size()) != count) throw UsageError("by sizes not constant");
  std::int64_t first = 0;
  for (int i = 0; i < node.output_size(); ++i) {
    const std::int64_t size = sizes[static_cast<std::size_t>(i)];
    if (size < 1 || first >= channels || size > channels) throw UsageError("by these sizes");
    const std::string& part = node.output(i);
    if (part == net.graph.output() || !net.graph.readers(part).empty()) {
      add_channels(net, node, i, x, axis, first, std::min(first + size, channels));
    }
    first += size;
  }
  if (has_input(node, 1) && first != channels) throw UsageError("by these sizes");
}

void add_part(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.value(node, 0);
  const Shape sides = net.forms.shape_of(x);
  const std::int64_t axis = axis_of(attributes.integer("axis", 0), sides.size());
  const std::int64_t size = attributes.integer("size", 0);
  const std::int64_t index = attributes.integer("index", 0);
  const bool is_axis = axis >= 1 && axis < static_cast<std::int64_t>(sides.size());
  const std::int64_t channels = is_axis ? sides[static_cast<std::size_t>(axis)] : 0;
  if (size < 1 || size > channels || index < 0 || index > (channels - 1) / size) {
    throw UsageError(fmt::format("of part {} of {} along axis {} of {}", index, size, axis,
                                 net.forms.shown_shape(x)));
  }
  add_channels(net, node, 0, x, axis, index * size, std::min((index + 1) * size, channels));
}

void add_softmax(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.value(node, 0);
  const OnnxValue ordered = net.forms.with_channels(
      x, axis_of(attributes.integer("axis", -1), net.forms.shape_of(x).size()));
  net.set_like(node, ordered, net.build.softmax(ordered.node));
}

void add_reduce_mean(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.value(node, 0);
  const Shape sides = net.forms.shape_of(x);
  std::vector<std::int64_t> axes = attributes.integers("axes");
  if (has_input(node, 1)) axes = net.constants.integers(node.input(1)).value_or(axes);
  for (std::int64_t& axis : axes) axis = axis_of(axis, sides.size());
  std::ranges::sort(axes);
  const bool keeps = attributes.integer("keepdims", 1) != 0;
  const bool is_of_first = x.form == OnnxForm::kChannelsFirst && axes == Shape{2, 3};
  const bool is_of_last = x.form == OnnxForm::kChannelsLast && axes == Shape{1, 2};
  const bool is_of_rows = x.form == OnnxForm::kRows && axes == Shape{1} && !keeps;
  if (is_of_first || is_of_last || is_of_rows) {
    const OnnxForm pixel = is_of_first ? OnnxForm::kPixelFirst : OnnxForm::kPixelLast;
    return net.set(node, {.node = net.build.global_average_pool(x.node),
                          .form = keeps ? pixel : OnnxForm::kVector});
  }
  const auto is_inside = [&](std::int64_t axis) {
    return axis > 0 && axis < static_cast<std::int64_t>(sides.size());
  };
  if (axes.empty() || !std::ranges::all_of(axes, is_inside) || x.form == OnnxForm::kVector) {
    throw UsageError(fmt::format("over the axes {} of {}; expected axes of a map",
                                 fmt::join(axes, ", "), net.forms.shown_shape(x)));
  }
  OnnxValue result = net.forms.in_order(x);
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
  result.node = net.build.reduce_mean(result.node, of_memory);
  result.is_positive = false;
  if (left.empty()) left = {1};
  net.set(node, keeps ? result : net.forms.reshaped(node, result, left));
}

}  // namespace

std::span<const OnnxRow> shape_rows() {
  static constexpr OnnxRow kRows[] = {
      {"ReduceMean", 1, "axes keepdims noop_with_empty_axes", add_reduce_mean},
      {"Slice", 3, "", add_slice},
      {"Split", 1, "axis num_outputs", add_split},
      {"syncopate.joined::Part", 1, "axis index size", add_part},
      {"Softmax", 1, "axis", add_softmax},
      {"Flatten", 1, "axis", add_flatten},
      {"Reshape", 2, "allowzero", add_reshape},
      {"Squeeze", 1, "", add_squeeze},
      {"Unsqueeze", 2, "", add_unsqueeze},
      {"Transpose", 1, "perm", add_transpose}};
  return kRows;
}

}  // namespace syncopate
