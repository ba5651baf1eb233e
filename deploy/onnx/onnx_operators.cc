// The operators of ONNX that have no weights, and the table of all operators.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "deploy/onnx/onnx_reader.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::array kOnnxActivations = {
    std::pair{std::string_view("Sigmoid"), Activation::kSigmoid},
    std::pair{std::string_view("Tanh"), Activation::kTanh},
    std::pair{std::string_view("Gelu"), Activation::kGelu},
    std::pair{std::string_view("Silu"), Activation::kSilu},
    std::pair{std::string_view("HardSwish"), Activation::kHardSwish}};

}  // namespace

// Silu is the name that join_activations() gives, and Swish is no operator of the opsets here.
std::span<const OnnxReader::Row> OnnxReader::rows() {
  static const std::vector<Row> kRows = {
      {"Conv",
       2,
       {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"},
       &OnnxReader::check_conv,
       &OnnxReader::add_conv},
      {"ConvTranspose",
       2,
       {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape", "pads",
        "strides"},
       &OnnxReader::check_conv_transpose,
       &OnnxReader::add_conv_transpose},
      {"BatchNormalization",
       5,
       {"epsilon", "momentum", "spatial", "training_mode"},
       &OnnxReader::check_batch_norm,
       &OnnxReader::add_batch_norm},
      {"LayerNormalization",
       2,
       {"axis", "epsilon", "stash_type"},
       nullptr,
       &OnnxReader::add_layer_norm},
      {"Gemm",
       2,
       {"alpha", "beta", "transA", "transB"},
       &OnnxReader::check_gemm,
       &OnnxReader::add_gemm},
      {"MatMul", 2, {}, nullptr, &OnnxReader::add_matmul},
      {"Dropout", 1, {"seed"}, nullptr, &OnnxReader::add_dropout},
      {"MaxPool",
       1,
       {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"},
       &OnnxReader::check_window,
       &OnnxReader::add_max_pool},
      {"AveragePool",
       1,
       {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads",
        "strides"},
       &OnnxReader::check_window,
       &OnnxReader::add_average_pool},
      {"GlobalAveragePool", 1, {}, nullptr, &OnnxReader::add_global_pool},
      {"ReduceMean",
       1,
       {"axes", "keepdims", "noop_with_empty_axes"},
       nullptr,
       &OnnxReader::add_reduce_mean},
      {"Relu", 1, {}, nullptr, &OnnxReader::add_relu},
      {"Sigmoid", 1, {}, nullptr, &OnnxReader::add_activation},
      {"Tanh", 1, {}, nullptr, &OnnxReader::add_activation},
      {"Gelu", 1, {"approximate"}, &OnnxReader::check_gelu, &OnnxReader::add_activation},
      {"Silu", 1, {}, nullptr, &OnnxReader::add_activation},
      {"HardSwish", 1, {}, nullptr, &OnnxReader::add_activation},
      {"Clip", 1, {}, nullptr, &OnnxReader::add_clip},
      {"Identity", 1, {}, nullptr, &OnnxReader::add_identity},
      {"Cast", 1, {"to", "saturate"}, nullptr, &OnnxReader::add_identity},
      {"Add", 2, {}, nullptr, &OnnxReader::add_sum},
      {"Mul", 2, {}, nullptr, &OnnxReader::add_product},
      {"Concat", 1, {"axis"}, nullptr, &OnnxReader::add_concat},
      {"Flatten", 1, {"axis"}, nullptr, &OnnxReader::add_flatten},
      {"Reshape", 2, {"allowzero"}, nullptr, &OnnxReader::add_reshape},
      {"Squeeze", 1, {}, nullptr, &OnnxReader::add_squeeze},
      {"Unsqueeze", 2, {}, nullptr, &OnnxReader::add_unsqueeze},
      {"Transpose", 1, {"perm"}, nullptr, &OnnxReader::add_transpose}};
  return kRows;
}

void OnnxReader::check_window(const OnnxAttributes& attributes) const {
  refuse_dilation(attributes);
  one_size(attributes, "strides", 1);
  if (!attributes.has("kernel_shape")) throw UsageError("without kernel_shape");
  one_size(attributes, "kernel_shape", 1);
}

void OnnxReader::check_gelu(const OnnxAttributes& attributes) const {
  const std::string kind = attributes.text("approximate", "none");
  if (kind != "none") throw UsageError("with approximate " + shown_name(kind));
}

MaxPoolOp OnnxReader::window_of(const Node& node, const OnnxValue& x,
                                const OnnxAttributes& attributes) const {
  const Shape& map = map_of(x);
  channels_of(x);
  const int window = one_size(attributes, "kernel_shape", 1);
  const int stride = one_size(attributes, "strides", 1);
  const std::array<std::int64_t, 2> kernel = {window, window};
  const Padding pad = onnx_padding(attributes, map, kernel, stride);
  if (!pad.is_one_number()) {
    throw UsageError(fmt::format("with pads {}, {}, {}, {}; expected equal ones", pad.top, pad.left,
                                 pad.bottom, pad.right));
  }
  if (attributes.integer("ceil_mode", 0) != 0) {
    for (std::size_t i = 0; i < 2; ++i) {
      if ((map[i] + 2 * pad.top - window) % stride == 0) continue;
      throw UsageError("with ceil_mode that adds a window");
    }
  }
  if (node.op_type() == "AveragePool" && pad.top > 0 &&
      attributes.integer("count_include_pad", 0) == 0) {
    throw UsageError("with count_include_pad 0 and pads");
  }
  return {.window = window, .stride = stride, .pad = pad.top};
}

void OnnxReader::add_max_pool(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  set_like(node, x, build_.max_pool(x.node, window_of(node, x, attributes)));
}

void OnnxReader::add_average_pool(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  const MaxPoolOp op = window_of(node, x, attributes);
  // PyTorch writes an adaptive pool to the size that the map has as a window of one pixel.
  if (op.window == 1 && op.stride == 1) return set(node, OnnxValue(x));
  set_like(node, x,
           build_.average_pool(x.node, {.window = op.window, .stride = op.stride, .pad = op.pad}));
}

void OnnxReader::add_global_pool(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = value(node, 0);
  channels_of(x);
  set(node, {.node = build_.global_average_pool(x.node), .form = OnnxForm::kPixelFirst});
}

void OnnxReader::add_reduce_mean(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  std::vector<std::int64_t> axes = attributes.integers("axes");
  if (has_input(node, 1)) axes = constants_.integers(node.input(1)).value_or(axes);
  for (std::int64_t& axis : axes) axis = axis_of(axis, 4);
  std::ranges::sort(axes);
  const bool is_first = x.form == OnnxForm::kChannelsFirst && axes == Shape{2, 3};
  const bool is_last = x.form == OnnxForm::kChannelsLast && axes == Shape{1, 2};
  if (!is_first && !is_last) throw UsageError("over other axes than H and W of a map");
  const OnnxForm pixel = is_first ? OnnxForm::kPixelFirst : OnnxForm::kPixelLast;
  set(node, {.node = build_.global_average_pool(x.node),
             .form = attributes.integer("keepdims", 1) != 0 ? pixel : OnnxForm::kVector});
}

void OnnxReader::add_relu(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = value(node, 0);
  set_like(node, x, build_.relu(x.node));
}

void OnnxReader::add_activation(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = value(node, 0);
  const auto* const kind = std::ranges::find(kOnnxActivations, node.op_type(),
                                             [](const auto& each) { return each.first; });
  check(kind != kOnnxActivations.end(), "the operator is an activation");
  set_like(node, x, build_.activation(x.node, kind->second));
}

void OnnxReader::add_clip(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = value(node, 0);
  const auto bound = [&](int index) {
    return has_input(node, index) ? constants_.number(node.input(index)) : std::nullopt;
  };
  const auto least = bound(1);
  const auto most = bound(2);
  if (least == 0.0 && most == 6.0) {
    return set_like(node, x, build_.activation(x.node, Activation::kRelu6));
  }
  if (least == 0.0 && !has_input(node, 2)) return set_like(node, x, build_.relu(x.node));
  const auto shown = [](const std::optional<double>& number) {
    return number ? fmt::format("{}", *number) : "none";
  };
  throw UsageError(fmt::format("to {} and {}; expected 0 and 6", shown(least), shown(most)));
}

void OnnxReader::add_identity(const Node& node, const OnnxAttributes& attributes) {
  constexpr std::int64_t kToFloat = 1;
  if (node.op_type() == "Cast" && attributes.integer("to", 0) != kToFloat) {
    throw UsageError("to another type than float");
  }
  set(node, OnnxValue(value(node, 0)));
}

void OnnxReader::add_sum(const Node& node, const OnnxAttributes& /*attributes*/) {
  add_pair(node, true);
}

void OnnxReader::add_product(const Node& node, const OnnxAttributes& /*attributes*/) {
  add_pair(node, false);
}

void OnnxReader::add_pair(const Node& node, bool is_sum) {
  for (const int i : {0, 1}) {
    if (is_value(node, i)) continue;
    throw UsageError(is_sum ? "of a constant that is no layer's bias" : "by a constant");
  }
  const OnnxValue& a = value(node, 0);
  const OnnxValue& b = value(node, 1);
  if (a.form != b.form || a.channels_last != b.channels_last || map_of(a) != map_of(b)) {
    throw UsageError(
        fmt::format("of {} and {}; expected equal shapes", shown_shape(a), shown_shape(b)));
  }
  set_like(node, a, is_sum ? build_.add(a.node, b.node) : build_.multiply(a.node, b.node));
}

void OnnxReader::add_concat(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& first = value(node, 0);
  std::vector<NodeId> inputs;
  for (int i = 0; i < node.input_size(); ++i) {
    const OnnxValue& x = value(node, i);
    if (x.form != first.form || !x.channels_last.empty()) {
      throw UsageError(fmt::format("of {} and {}; expected maps, or vectors of dense layers",
                                   shown_shape(first), shown_shape(x)));
    }
    inputs.push_back(x.node);
  }
  const std::size_t rank = shape_of(first).size();
  const std::int64_t axis = axis_of(attributes.integer("axis", 1), rank);
  const bool is_last = first.form == OnnxForm::kChannelsLast || first.form == OnnxForm::kPixelLast;
  if (first.form == OnnxForm::kPlane || axis != (is_last ? 3 : 1)) {
    throw UsageError(fmt::format("over axis {} of {}", axis, shown_shape(first)));
  }
  if (inputs.size() == 1) return set(node, OnnxValue(first));
  set_like(node, first, build_.concat(std::move(inputs)));
}

OnnxValue OnnxReader::flattened(const OnnxValue& x) {
  OnnxValue result = x;
  result.form = OnnxForm::kVector;
  const Shape map = map_of(x);
  if (map.size() != 3) return result;
  result.node = build_.flatten(x.node);
  // Of one channel or one pixel both orders are the same.
  const bool is_reordered = map[2] > 1 && map[0] * map[1] > 1;
  if (x.form == OnnxForm::kChannelsLast && is_reordered) result.channels_last = map;
  return result;
}

void OnnxReader::add_flatten(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  if (axis_of(attributes.integer("axis", 1), shape_of(x).size()) != 1) {
    throw UsageError(fmt::format("from axis {}", attributes.integer("axis", 1)));
  }
  set(node, flattened(x));
}

// target: all sides but the number of samples; -1 for one that follows from the others.
OnnxValue OnnxReader::reshaped(const Node& node, const OnnxValue& x, Shape target) {
  const Shape found = shape_of(x);
  const Shape sides(found.begin() + 1, found.end());
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
  if (is_sound && target == sides) return x;
  if (is_sound && target == Shape{elements}) return flattened(x);
  OnnxValue result = x;
  const bool is_pixel = x.form == OnnxForm::kVector || x.form == OnnxForm::kPixelFirst ||
                        x.form == OnnxForm::kPixelLast;
  if (x.form == OnnxForm::kPlane && target == Shape{1, sides[0], sides[1]}) {
    result.form = OnnxForm::kChannelsFirst;
  } else if (x.form == OnnxForm::kPlane && target == Shape{sides[0], sides[1], 1}) {
    result.form = OnnxForm::kChannelsLast;
  } else if (is_pixel && target == Shape{elements, 1, 1}) {
    result.form = OnnxForm::kPixelFirst;
  } else if (is_pixel && target == Shape{1, 1, elements}) {
    result.form = OnnxForm::kPixelLast;
  } else {
    throw UsageError(fmt::format("{}of {} to [N, {}]; expected a vector [N, F]",
                                 node.op_type() == "Reshape" ? "" : "that is a Reshape ",
                                 shown_shape(x), fmt::format("{}", fmt::join(target, ", "))));
  }
  return result;
}

void OnnxReader::add_reshape(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  const auto target = constants_.integers(node.input(1));
  if (!target) throw UsageError("to a shape that is computed from the input");
  const Shape found = shape_of(x);
  Shape sides = *target;
  const bool copies_zeros = attributes.integer("allowzero", 0) == 0;
  for (std::size_t i = 0; copies_zeros && i < sides.size() && i < found.size(); ++i) {
    if (sides[i] == 0 && i > 0) sides[i] = found[i];
  }
  // The first side is the number of samples: -1 or 0, the fixed number, or the one that follows.
  const bool keeps_samples =
      !sides.empty() && (sides[0] == -1 || (sides[0] == 0 && copies_zeros) || sides[0] == batch_);
  if (!keeps_samples) throw UsageError(fmt::format("to [{}]", fmt::join(sides, ", ")));
  const bool is_open = sides[0] == -1 && batch_ != -1;
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
  if (axes.empty() || sides.empty()) throw UsageError("without constant axes");
  set(node, reshaped(node, x, std::move(sides)));
}

void OnnxReader::add_unsqueeze(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = value(node, 0);
  Shape sides = shape_of(x);
  auto axes = constants_.integers(node.input(1));
  if (!axes || axes->empty() || axes->size() > 4) throw UsageError("without constant axes");
  for (std::int64_t& axis : *axes) axis = axis_of(axis, sides.size() + axes->size());
  std::ranges::sort(*axes);
  for (const std::int64_t axis : *axes) {
    if (axis < 1 || axis > static_cast<std::int64_t>(sides.size())) {
      throw UsageError(fmt::format("at axis {}", axis));
    }
    sides.insert(sides.begin() + axis, 1);
  }
  set(node, reshaped(node, x, Shape(sides.begin() + 1, sides.end())));
}

void OnnxReader::add_transpose(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  std::vector<std::int64_t> order = attributes.integers("perm");
  const std::size_t rank = shape_of(x).size();
  std::vector<std::int64_t> same(rank);
  std::iota(same.begin(), same.end(), 0);
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
  } else if (order != same) {
    throw UsageError(fmt::format("of {} to the order {}", shown_shape(x), fmt::join(order, ", ")));
  }
  set(node, std::move(result));
}

}  // namespace syncopate
