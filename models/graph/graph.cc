#include "models/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

ArenaLayout layout_of_parameters(const std::vector<Parameter>& parameters) {
  std::vector<ArenaEntry> entries;
  entries.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    entries.push_back({parameter.name, parameter.shape, parameter.decays});
  }
  return ArenaLayout(std::move(entries));
}

}  // namespace

std::string_view name(Init init) noexcept {
  switch (init) {
    case Init::kZeros:
      return "zeros";
    case Init::kOnes:
      return "ones";
    case Init::kHeUniform:
      return "he-uniform";
    case Init::kGlorotUniform:
      return "glorot-uniform";
  }
  return "unknown";
}

std::string_view name(LossKind kind) noexcept {
  switch (kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return "softmax-cross-entropy";
    case LossKind::kBinaryCrossEntropy:
      return "binary-cross-entropy";
    case LossKind::kMeanSquaredError:
      return "mean-squared-error";
    case LossKind::kLaterStages:
      return "later-stages";
  }
  return "unknown";
}

std::span<const LossMetric> metrics(LossKind kind) noexcept {
  static constexpr std::array kOfClasses = {LossMetric{"accuracy"}};
  static constexpr std::array kOfNumbers = {LossMetric{"mae", false}};
  return kind == LossKind::kMeanSquaredError ? std::span<const LossMetric>(kOfNumbers) : kOfClasses;
}

std::string_view name(Activation kind) noexcept {
  switch (kind) {
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kTanh:
      return "tanh";
    case Activation::kGelu:
      return "gelu";
    case Activation::kSilu:
      return "silu";
    case Activation::kHardSwish:
      return "hard-swish";
    case Activation::kRelu6:
      return "relu6";
    case Activation::kHardSigmoid:
      return "hard-sigmoid";
    case Activation::kClip:
      return "clip";
    case Activation::kLinear:
      return "linear";
  }
  return "unknown";
}

std::string_view name(Interpolation mode) noexcept {
  return mode == Interpolation::kNearest ? "nearest" : "bilinear";
}

std::string_view name(const Operation& operation) noexcept {
  if (const auto* loss = std::get_if<LossOp>(&operation)) return name(loss->kind);
  if (const auto* activation = std::get_if<ActivationOp>(&operation)) return name(activation->kind);
  static constexpr std::array<std::string_view, std::variant_size_v<Operation>> kNames = {
      "input",
      "conv2d",
      "conv_transpose2d",
      "batch_norm",
      "layer_norm",
      "dropout",
      "relu",
      "activation",
      "max_pool",
      "average_pool",
      "global_average_pool",
      "flatten",
      "dense",
      "add",
      "multiply",
      "concat",
      "slice",
      "upsample2d",
      "softmax",
      "reshape",
      "transpose",
      "reduce_mean",
      "matmul",
      "shortcut",
      "loss"};
  return kNames[operation.index()];
}

std::vector<NodeId> Graph::inputs() const {
  std::vector<NodeId> found;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (std::holds_alternative<InputOp>(nodes[i].operation))
      found.push_back(static_cast<NodeId>(i));
  }
  return found;
}

std::size_t Graph::num_inputs() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      nodes, [](const Node& node) { return std::holds_alternative<InputOp>(node.operation); }));
}

std::size_t Graph::input_index(std::string_view input_name) const {
  std::size_t index = 0;
  std::string known;
  for (const Node& node : nodes) {
    if (!std::holds_alternative<InputOp>(node.operation)) continue;
    if (node.name == input_name) return index;
    ++index;
    known += (known.empty() ? "" : ", ") + node.name;
  }
  throw ShapeError(
      fmt::format("the network has no input '{}'; its inputs are {}", input_name, known));
}

bool Graph::uses_keys() const noexcept {
  return std::ranges::any_of(nodes, [](const Node& node) {
    const auto* dropout = std::get_if<DropoutOp>(&node.operation);
    return dropout != nullptr && dropout->threshold() > 0;
  });
}

const Node& Graph::first_input() const {
  return *std::ranges::find_if(
      nodes, [](const Node& node) { return std::holds_alternative<InputOp>(node.operation); });
}

const Shape& Graph::logits_shape() const {
  return nodes.at(static_cast<std::size_t>(nodes.back().inputs.at(0))).shape;
}

Shape Graph::target_shape() const {
  Shape shape = logits_shape();
  if (has_classes(loss().kind)) shape.pop_back();
  return shape;
}

std::int64_t Graph::num_parameters() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) count += num_elements(parameter.shape);
  return count;
}

ArenaLayout Graph::parameter_layout() const { return layout_of_parameters(parameters); }

ArenaLayout Graph::state_layout() const {
  std::vector<ArenaEntry> entries;
  entries.reserve(state.size());
  for (const State& s : state) entries.push_back({s.name, s.shape, false});
  return ArenaLayout(std::move(entries));
}

std::int64_t multiply_adds_of(const Graph& graph, const Node& node) {
  const auto weight_elements = [&] {
    return num_elements(graph.parameters[static_cast<std::size_t>(node.parameters.front())].shape);
  };
  if (std::holds_alternative<Conv2dOp>(node.operation)) {
    return weight_elements() * node.shape[0] * node.shape[1];
  }
  if (std::holds_alternative<ConvTranspose2dOp>(node.operation)) {
    const Shape& in = graph.nodes[static_cast<std::size_t>(node.inputs.front())].shape;
    return weight_elements() * in[0] * in[1];
  }
  if (std::holds_alternative<MatmulOp>(node.operation)) {
    const Shape& in = graph.nodes[static_cast<std::size_t>(node.inputs.front())].shape;
    return num_elements(node.shape) * in[2];
  }
  return std::holds_alternative<DenseOp>(node.operation) ? weight_elements() : 0;
}

float InputOp::unit() const noexcept {
  if (dtype == DType::kU8) return 255.0F;
  return dtype == DType::kU16 ? 65535.0F : 1.0F;
}

std::uint32_t DropoutOp::threshold() const noexcept {
  return static_cast<std::uint32_t>(static_cast<double>(rate) * 0x1p32);
}

}  // namespace syncopate
