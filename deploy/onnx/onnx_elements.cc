// The operators of ONNX that compute on each element, and the concatenation of channels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "deploy/onnx/onnx_operators.h"
#include "deploy/onnx/replaced_nodes.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::array kOnnxActivations = {
    std::pair{std::string_view("Sigmoid"), Activation::kSigmoid},
    std::pair{std::string_view("Tanh"), Activation::kTanh},
    std::pair{std::string_view("Gelu"), Activation::kGelu},
    std::pair{std::string_view("Silu"), Activation::kSilu},
    std::pair{std::string_view("Swish"), Activation::kSilu},
    std::pair{std::string_view("HardSwish"), Activation::kHardSwish}};

void check_gelu(const OnnxAttributes& attributes) {
  const std::string kind = attributes.text("approximate", "none");
  if (kind != "none") throw UsageError("with approximate " + shown_name(kind));
}

void check_swish(const OnnxAttributes& attributes) {
  const float alpha = attributes.number("alpha", 1.0F);
  if (alpha != 1.0F) throw UsageError(fmt::format("with alpha {}; expected 1", alpha));
}

// Throws UsageError if a number that a node reads may be trained. Adds a note if the file does not
// show it.
void require_fixed(OnnxReading& net, const NodeProto& node, int index) {
  const OnnxOrigin origin = net.constants.origin(node, index);
  if (origin == OnnxOrigin::kFixed) return;
  const std::string& tensor = net.graph.constant(node, index)->source;
  // A bound is rarely trained, and programs that simplify files store the bounds of ReLU6.
  const bool is_kept = node.op_type() == "Clip"
                           ? !net.constants.origins().is_named_as_parameter(node, tensor)
                           : origin == OnnxOrigin::kUnclear;
  if (is_kept) {
    const bool is_divisor = tensor.find("_recip") != std::string::npos;
    net.notes.push_back(
        fmt::format("{} of node {} stays as it is; if {} was trained, the network trains otherwise",
                    shown_name(tensor), node_name(node), is_divisor ? "the divisor" : "it"));
    return;
  }
  throw UsageError(
      fmt::format("with {}, which may be a trained number, and those have no counterpart here; "
                  "export a fixed one as a number of Python, such as 0.5",
                  shown_name(tensor)));
}

void add_relu(OnnxReading& net, const NodeProto& node, const OnnxAttributes& /*attributes*/) {
  OnnxValue x = net.value(node, 0);
  x.node = net.build.relu(x.node);
  x.is_positive = true;
  net.set(node, std::move(x));
}

void add_activation(OnnxReading& net, const NodeProto& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = net.value(node, 0);
  const auto* const kind = std::ranges::find(kOnnxActivations, node.op_type(),
                                             [](const auto& each) { return each.first; });
  check(kind != kOnnxActivations.end(), "the operator is an activation");
  net.set_like(node, x, net.build.activation(x.node, kind->second));
}

void add_clip(OnnxReading& net, const NodeProto& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = net.value(node, 0);
  for (const int i : {1, 2}) require_fixed(net, node, i);
  const auto bound = [&](int index) {
    return has_input(node, index) ? net.constants.number(node.input(index)) : std::nullopt;
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
    result.node = net.build.activation(x.node, Activation::kRelu6);
  } else if (least == 0.0 && !most) {
    result.node = net.build.relu(x.node);
  } else {
    result.node = net.build.clip(x.node, static_cast<float>(least.value_or(-kMost)),
                                 static_cast<float>(most.value_or(kMost)));
  }
  net.set(node, std::move(result));
}

void add_hard_sigmoid(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.value(node, 0);
  const float alpha = attributes.number("alpha", 0.2F);
  const float beta = attributes.number("beta", 0.5F);
  const bool is_usual = is_hard_sigmoid(attributes);
  net.set_like(node, x,
               is_usual ? net.build.activation(x.node, Activation::kHardSigmoid)
                        : net.build.clip(net.build.linear(x.node, alpha, beta), 0.0F, 1.0F));
}

void add_leaky_relu(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.value(node, 0);
  net.set_like(node, x, net.build.leaky_relu(x.node, attributes.number("alpha", 0.01F)));
}

void add_identity(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  constexpr std::int64_t kToFloat = 1;
  if (node.op_type() == "Cast" && attributes.integer("to", 0) != kToFloat) {
    throw UsageError("to another type than float");
  }
  net.set(node, OnnxValue(net.pending_value(node, 0)));
}

// is_first: the number stands in front of the operator.
void add_number(OnnxReading& net, const NodeProto& node, const OnnxValue& x, double number,
                bool is_first) {
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
  if (factor == 1.0 && offset == 0.0) return net.set(node, OnnxValue(x));
  net.set_like(node, x,
               net.build.linear(x.node, static_cast<float>(factor), static_cast<float>(offset)));
}

OnnxValue combined(OnnxReading& net, const OnnxValue& a, const OnnxValue& b, bool is_sum) {
  const auto are_factors = [&](const OnnxValue& factors, const OnnxValue& map) {
    if (net.forms.map_of(map).size() != 3 || net.forms.map_of(map) == net.forms.map_of(factors))
      return false;
    if (factors.form == map.form)
      return net.forms.map_of(factors) == Shape{1, 1, net.forms.map_of(map)[2]};
    return (factors.form == OnnxForm::kPixelFirst && map.form == OnnxForm::kChannelsFirst) ||
           (factors.form == OnnxForm::kPixelLast && map.form == OnnxForm::kChannelsLast);
  };
  OnnxValue result = are_factors(a, b) ? b : a;
  result.is_positive = false;
  const bool has_factors = !is_sum && (are_factors(a, b) || are_factors(b, a));
  const bool are_alike = a.form == b.form && a.channels_last == b.channels_last;
  if (has_factors || (are_alike && net.forms.map_of(a) == net.forms.map_of(b))) {
    result.node = is_sum ? net.build.add(a.node, b.node) : net.build.multiply(a.node, b.node);
    return result;
  }
  if (a.form == b.form || net.forms.shape_of(a) != net.forms.shape_of(b)) {
    throw UsageError(fmt::format("of {} and {}; expected equal shapes", net.forms.shown_shape(a),
                                 net.forms.shown_shape(b)));
  }
  return combined(net, net.forms.in_order(a), net.forms.in_order(b), is_sum);
}

void add_arithmetic(OnnxReading& net, const NodeProto& node, const OnnxAttributes& /*attributes*/) {
  const std::string& op = node.op_type();
  for (const int i : {0, 1}) {
    if (net.is_value(node, i)) continue;
    const auto number = has_input(node, i) ? net.constants.number(node.input(i)) : std::nullopt;
    if (!number && has_input(node, i) && net.constants.has_samples(node.input(i))) {
      throw UsageError("with the number of samples, which is not fixed; expected a number");
    }
    if (!number) {
      throw UsageError(op == "Add" ? "of a constant that is no layer's bias and no number"
                                   : "by a constant that is no number");
    }
    require_fixed(net, node, i);
    return add_number(net, node, net.value(node, 1 - i), *number, i == 0);
  }
  if (op == "Div") throw UsageError("of two values");
  OnnxValue b = net.value(node, 1);
  if (op == "Sub") b.node = net.build.linear(b.node, -1.0F);
  net.set(node, combined(net, net.value(node, 0), b, op != "Mul"));
}

void add_concat(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const std::size_t rank = net.forms.shape_of(net.value(node, 0)).size();
  const std::int64_t axis = axis_of(attributes.integer("axis", 1), rank);
  std::vector<NodeId> inputs;
  OnnxValue first;
  for (int i = 0; i < node.input_size(); ++i) {
    const OnnxValue x = net.forms.with_channels(net.value(node, i), axis);
    if (i == 0) first = x;
    if (x.form != first.form) {
      throw UsageError(fmt::format("of {} and {}; expected maps, or vectors of dense layers",
                                   net.forms.shown_shape(net.value(node, 0)),
                                   net.forms.shown_shape(net.value(node, i))));
    }
    inputs.push_back(x.node);
  }
  if (inputs.size() == 1) return net.set(node, OnnxValue(first));
  net.set_like(node, first, net.build.concat(std::move(inputs)));
}

}  // namespace

std::span<const OnnxRow> element_rows() {
  static constexpr OnnxRow kRows[] = {{"Relu", 1, "", add_relu},
                                      {"Sigmoid", 1, "", add_activation},
                                      {"Tanh", 1, "", add_activation},
                                      {"Gelu", 1, "approximate", add_activation, check_gelu},
                                      {"syncopate.joined::Silu", 1, "", add_activation},
                                      {"Swish", 1, "alpha", add_activation, check_swish},
                                      {"HardSwish", 1, "", add_activation},
                                      {"HardSigmoid", 1, "alpha beta", add_hard_sigmoid},
                                      {"LeakyRelu", 1, "alpha", add_leaky_relu},
                                      {"Clip", 1, "", add_clip},
                                      {"Identity", 1, "", add_identity},
                                      {"Cast", 1, "to saturate", add_identity},
                                      {"Add", 2, "", add_arithmetic},
                                      {"Sub", 2, "", add_arithmetic},
                                      {"Mul", 2, "", add_arithmetic},
                                      {"Div", 2, "", add_arithmetic},
                                      {"Concat", 1, "axis", add_concat}};
  return kRows;
}

}  // namespace syncopate
