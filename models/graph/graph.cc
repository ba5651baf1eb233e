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

std::span<const LossMetric> metrics(LossKind kind) noexcept {
  static constexpr std::array kOfClasses = {LossMetric{"accuracy"}};
  static constexpr std::array kOfNumbers = {LossMetric{"mae", false}};
  return kind == LossKind::kMeanSquaredError ? std::span<const LossMetric>(kOfNumbers) : kOfClasses;
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

float InputOp::unit() const noexcept {
  if (dtype == DType::kU8) return 255.0F;
  return dtype == DType::kU16 ? 65535.0F : 1.0F;
}

std::uint32_t DropoutOp::threshold() const noexcept {
  return static_cast<std::uint32_t>(static_cast<double>(rate) * 0x1p32);
}

}  // namespace syncopate
