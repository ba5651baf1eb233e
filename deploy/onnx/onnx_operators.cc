// The operators of ONNX that have no weights, and the table of all operators.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
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
    std::pair{std::string_view("Swish"), Activation::kSilu},
    std::pair{std::string_view("HardSwish"), Activation::kHardSwish}};

}  // namespace

// join_activations(), join_repeats() and join_parts() write the nodes of kJoinedDomain.
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
      {"syncopate.joined::Silu", 1, {}, nullptr, &OnnxReader::add_activation},
      {"Swish", 1, {"alpha"}, &OnnxReader::check_swish, &OnnxReader::add_activation},
      {"HardSwish", 1, {}, nullptr, &OnnxReader::add_activation},
      {"HardSigmoid", 1, {"alpha", "beta"}, nullptr, &OnnxReader::add_hard_sigmoid},
      {"Clip", 1, {}, nullptr, &OnnxReader::add_clip},
      {"Slice", 3, {}, nullptr, &OnnxReader::add_slice},
      {"Split", 1, {"axis", "num_outputs"}, nullptr, &OnnxReader::add_split},
      {"syncopate.joined::Part", 1, {"axis", "index", "size"}, nullptr, &OnnxReader::add_part},
      {"Softmax", 1, {"axis"}, nullptr, &OnnxReader::add_softmax},
      {"Resize",
       1,
       {"antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
        "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode"},
       &OnnxReader::check_resize,
       &OnnxReader::add_resize},
      {"syncopate.joined::Repeat", 1, {"axis", "count"}, nullptr, &OnnxReader::add_repeat},
      {"Pad", 2, {"mode"}, nullptr, &OnnxReader::add_pad},
      {"Identity", 1, {}, nullptr, &OnnxReader::add_identity},
      {"Cast", 1, {"to", "saturate"}, nullptr, &OnnxReader::add_identity},
      {"Add", 2, {}, nullptr, &OnnxReader::add_arithmetic},
      {"Sub", 2, {}, nullptr, &OnnxReader::add_arithmetic},
      {"Mul", 2, {}, nullptr, &OnnxReader::add_arithmetic},
      {"Div", 2, {}, nullptr, &OnnxReader::add_arithmetic},
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

void OnnxReader::check_swish(const OnnxAttributes& attributes) const {
  const float alpha = attributes.number("alpha", 1.0F);
  if (alpha != 1.0F) throw UsageError(fmt::format("with alpha {}; expected 1", alpha));
}

MaxPoolOp OnnxReader::window_of(const Node& node, const OnnxValue& x,
                                const OnnxAttributes& attributes) const {
  const Shape sides = shape_of(x);
  const Shape map = {sides[2], sides[3]};
  const int window = one_size(attributes, "kernel_shape", 1);
  const int stride = one_size(attributes, "strides", 1);
  const std::array<std::int64_t, 2> kernel = {window, window};
  Padding pad = onnx_padding(attributes, map, kernel, stride);
  if (x.pad != 0) {
    if (node.op_type() == "MaxPool" && !x.is_positive) {
      throw UsageError("of a map with a Pad of zeros; expected an activation such as Relu before");
    }
    if (pad != 0) throw UsageError("with pads, of a map with a Pad");
    pad = x.pad;
  }
  if (!pad.is_one_number()) {
    throw UsageError(fmt::format("with pads {}, {}, {}, {}; expected equal ones", pad.top, pad.left,
                                 pad.bottom, pad.right));
  }
  if (attributes.integer("ceil_mode", 0) != 0) {
    for (std::size_t i = 0; i < 2; ++i) {
      if ((map_of(x)[i] + 2 * pad.top - window) % stride == 0) continue;
      throw UsageError("with ceil_mode that adds a window");
    }
  }
  if (node.op_type() == "AveragePool" && pad.top > 0 && x.pad == 0 &&
      attributes.integer("count_include_pad", 0) == 0) {
    throw UsageError("with count_include_pad 0 and pads");
  }
  return {.window = window, .stride = stride, .pad = pad.top};
}

void OnnxReader::add_max_pool(const Node& node, const OnnxAttributes& attributes) {
  OnnxValue x = as_map(pending_value(node, 0));
  const NodeId id = build_.max_pool(x.node, window_of(node, x, attributes));
  x.pad = {};
  set_like(node, x, id);
}

void OnnxReader::add_average_pool(const Node& node, const OnnxAttributes& attributes) {
  OnnxValue x = as_map(pending_value(node, 0));
  const MaxPoolOp op = window_of(node, x, attributes);
  // PyTorch writes an adaptive pool to the size that the map has as a window of one pixel. A Pad in
  // front of it is that of the next layer.
  if (op.window == 1 && op.stride == 1 && (op.pad == 0 || x.pad != 0)) {
    return set(node, OnnxValue(x));
  }
  x.pad = {};
  set_like(node, x,
           build_.average_pool(x.node, {.window = op.window, .stride = op.stride, .pad = op.pad}));
}

void OnnxReader::add_global_pool(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue x = as_map(value(node, 0));
  set(node, {.node = build_.global_average_pool(x.node), .form = OnnxForm::kPixelFirst});
}

void OnnxReader::add_relu(const Node& node, const OnnxAttributes& /*attributes*/) {
  OnnxValue x = value(node, 0);
  x.node = build_.relu(x.node);
  x.is_positive = true;
  set(node, std::move(x));
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
  for (const int i : {1, 2}) require_fixed(node, i);
  const auto bound = [&](int index) {
    return has_input(node, index) ? constants_.number(node.input(index)) : std::nullopt;
  };
  const auto least = bound(1);
  const auto most = bound(2);
  if ((has_input(node, 1) && !least) || (has_input(node, 2) && !most)) {
    throw UsageError("to bounds that are no constant numbers");
  }
  OnnxValue result = x;
  result.is_positive = least && *least >= 0.0;
  constexpr double kMost = std::numeric_limits<float>::max();
  if (least == 0.0 && most == 6.0) {
    result.node = build_.activation(x.node, Activation::kRelu6);
  } else if (least == 0.0 && !most) {
    result.node = build_.relu(x.node);
  } else {
    result.node = build_.clip(x.node, static_cast<float>(least.value_or(-kMost)),
                              static_cast<float>(most.value_or(kMost)));
  }
  set(node, std::move(result));
}

void OnnxReader::add_hard_sigmoid(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = value(node, 0);
  const float alpha = attributes.number("alpha", 0.2F);
  const float beta = attributes.number("beta", 0.5F);
  const bool is_usual = is_hard_sigmoid(attributes);
  set_like(node, x,
           is_usual ? build_.activation(x.node, Activation::kHardSigmoid)
                    : build_.clip(build_.linear(x.node, alpha, beta), 0.0F, 1.0F));
}

void OnnxReader::add_identity(const Node& node, const OnnxAttributes& attributes) {
  constexpr std::int64_t kToFloat = 1;
  if (node.op_type() == "Cast" && attributes.integer("to", 0) != kToFloat) {
    throw UsageError("to another type than float");
  }
  set(node, OnnxValue(pending_value(node, 0)));
}

void OnnxReader::add_arithmetic(const Node& node, const OnnxAttributes& /*attributes*/) {
  const std::string& op = node.op_type();
  for (const int i : {0, 1}) {
    if (is_value(node, i)) continue;
    const auto number = has_input(node, i) ? constants_.number(node.input(i)) : std::nullopt;
    if (!number && has_input(node, i) && constants_.has_samples(node.input(i))) {
      throw UsageError("with the number of samples, which is not fixed; expected a number");
    }
    if (!number) {
      throw UsageError(op == "Add" ? "of a constant that is no layer's bias and no number"
                                   : "by a constant that is no number");
    }
    require_fixed(node, i);
    return add_number(node, value(node, 1 - i), *number, i == 0);
  }
  if (op == "Div") throw UsageError("of two values");
  OnnxValue b = value(node, 1);
  if (op == "Sub") b.node = build_.linear(b.node, -1.0F);
  set(node, combined(value(node, 0), b, op != "Mul"));
}

// is_first: the number stands in front of the operator.
void OnnxReader::add_number(const Node& node, const OnnxValue& x, double number, bool is_first) {
  const std::string& op = node.op_type();
  double factor = 1.0;
  double offset = 0.0;
  if (op == "Add") {
    offset = number;
  } else if (op == "Sub") {
    factor = is_first ? -1.0 : 1.0;
    offset = is_first ? number : -number;
  } else if (op == "Mul") {
    factor = number;
  } else if (is_first || number == 0.0) {
    throw UsageError(is_first ? "by a value" : "by 0");
  } else {
    factor = 1.0 / number;
  }
  if (!std::isfinite(factor) || !std::isfinite(offset)) throw UsageError("by a number too large");
  if (factor == 1.0 && offset == 0.0) return set(node, OnnxValue(x));
  set_like(node, x, build_.linear(x.node, static_cast<float>(factor), static_cast<float>(offset)));
}

OnnxValue OnnxReader::combined(const OnnxValue& a, const OnnxValue& b, bool is_sum) {
  const auto are_factors = [&](const OnnxValue& factors, const OnnxValue& map) {
    if (map_of(map).size() != 3 || map_of(map) == map_of(factors)) return false;
    if (factors.form == map.form) return map_of(factors) == Shape{1, 1, map_of(map)[2]};
    return (factors.form == OnnxForm::kPixelFirst && map.form == OnnxForm::kChannelsFirst) ||
           (factors.form == OnnxForm::kPixelLast && map.form == OnnxForm::kChannelsLast);
  };
  OnnxValue result = are_factors(a, b) ? b : a;
  result.is_positive = false;
  const bool has_factors = !is_sum && (are_factors(a, b) || are_factors(b, a));
  const bool are_alike = a.form == b.form && a.channels_last == b.channels_last;
  if (has_factors || (are_alike && map_of(a) == map_of(b))) {
    result.node = is_sum ? build_.add(a.node, b.node) : build_.multiply(a.node, b.node);
    return result;
  }
  if (a.form == b.form || shape_of(a) != shape_of(b)) {
    throw UsageError(
        fmt::format("of {} and {}; expected equal shapes", shown_shape(a), shown_shape(b)));
  }
  return combined(in_order(a), in_order(b), is_sum);
}

void OnnxReader::add_concat(const Node& node, const OnnxAttributes& attributes) {
  const std::size_t rank = shape_of(value(node, 0)).size();
  const std::int64_t axis = axis_of(attributes.integer("axis", 1), rank);
  std::vector<NodeId> inputs;
  OnnxValue first;
  for (int i = 0; i < node.input_size(); ++i) {
    const OnnxValue x = with_channels(value(node, i), axis);
    if (i == 0) first = x;
    if (x.form != first.form) {
      throw UsageError(fmt::format("of {} and {}; expected maps, or vectors of dense layers",
                                   shown_shape(value(node, 0)), shown_shape(value(node, i))));
    }
    inputs.push_back(x.node);
  }
  if (inputs.size() == 1) return set(node, OnnxValue(first));
  set_like(node, first, build_.concat(std::move(inputs)));
}

}  // namespace syncopate
