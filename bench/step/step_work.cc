#include "bench/step/step_work.h"

#include <variant>
#include <vector>

namespace syncopate::bench {
namespace {

// An update reads master value, slot and gradient and writes master value and slot, 4 bytes each.
constexpr double kUpdateBytes = 20.0;

class Count {
 public:
  explicit Count(const Graph& graph) : graph_(graph), consumers_(graph.nodes.size(), 0) {
    for (const Node& node : graph.nodes) {
      for (const NodeId input : node.inputs) ++consumers_[static_cast<std::size_t>(input)];
    }
  }

  double flops() const { return flops_; }
  double elements() const { return elements_; }

  void add(std::size_t index) {
    const Node& node = graph_.nodes[index];
    const double out = size(node);
    const double in = node.inputs.empty() ? 0.0 : size(input_of(node));
    if (const auto* conv = std::get_if<Conv2dOp>(&node.operation)) {
      const auto channels = static_cast<double>(input_of(node).shape.back());
      multiply(node, out * conv->kernel_h * conv->kernel_w * channels, in + out);
    } else if (std::holds_alternative<DenseOp>(node.operation)) {
      multiply(node, out * in, in + out);
    } else if (std::holds_alternative<BatchNormOp>(node.operation)) {
      elements_ += 3.0 * out;  // Forward computes statistics and then the output.
      // Backward computes sums over input and gradient, then the input's gradient.
      elements_ += 5.0 * out;
    } else if (std::holds_alternative<MaxPoolOp>(node.operation)) {
      elements_ += 2.0 * (in + out);
    } else if (std::holds_alternative<GlobalAveragePoolOp>(node.operation)) {
      elements_ += 2.0 * in;
    } else if (std::holds_alternative<AddOp>(node.operation) ||
               std::holds_alternative<ShortcutOp>(node.operation)) {
      elements_ += 2.0 * out;  // The operation reads the addend and its gradient.
    }
    // A gradient that arrives from two consumers is read from both.
    if (consumers_[index] > 1) elements_ += out;
  }

 private:
  static double size(const Node& node) { return static_cast<double>(num_elements(node.shape)); }
  const Node& input_of(const Node& node) const {
    return graph_.nodes[static_cast<std::size_t>(node.inputs.front())];
  }
  bool has_input_gradient(const Node& node) const {
    const Node& from = input_of(node);
    if (std::holds_alternative<FlattenOp>(from.operation)) return has_input_gradient(from);
    return !std::holds_alternative<InputOp>(from.operation);
  }
  // Counts three products: forward, the weight's gradient and the input's gradient.
  void multiply(const Node& node, double products, double maps) {
    const double passes = has_input_gradient(node) ? 3.0 : 2.0;
    flops_ += 2.0 * products * passes;
    elements_ += maps * passes;
  }

  const Graph& graph_;
  std::vector<int> consumers_;
  double flops_ = 0.0;
  double elements_ = 0.0;
};

}  // namespace

StepWork count_work(const Graph& graph, std::int64_t batch_size, std::int64_t element_bytes) {
  Count count(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) count.add(i);
  const auto samples = static_cast<double>(batch_size);
  const auto width = static_cast<double>(element_bytes);
  const auto parameters = static_cast<double>(graph.num_parameters());
  // Pixels are read as bytes and written in the element type of the first layer.
  const auto pixels = static_cast<double>(num_elements(graph.input_shape()));
  return {.flops = samples * count.flops(),
          .bytes = samples * (count.elements() * width + pixels * (1.0 + width)) +
                   parameters * (3.0 * width + kUpdateBytes)};
}

}  // namespace syncopate::bench
