#include "bench/step/step_work.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "models/graph/operation_row.h"

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
    const OperationRow& row = row_of(node.operation);
    const double out = size(node);
    const double in = node.inputs.empty() ? 0.0 : size(input_of(node));
    // A layer has three products: forward, the weight's gradient and the input's gradient.
    const double passes = row.multiply_adds == nullptr ? 1.0 : has_input_gradient(node) ? 3.0 : 2.0;
    flops_ += 2.0 * passes * static_cast<double>(multiply_adds_of(graph_, node));
    elements_ += passes * (row.moved.input * in + row.moved.output * out);
    // The gradient of an output with two consumers is the sum of two tensors, so one more is read.
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
  const Graph& graph_;
  std::vector<int> consumers_;
  double flops_ = 0.0;
  double elements_ = 0.0;
};

constexpr double kTera = 1e12;

std::string share_text(double reached, double ceiling) {
  return number_text(100.0 * reached / ceiling) + "%";
}

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

std::string describe(const DeviceFigures& figures, double step_seconds) {
  const double flops = figures.work.flops / step_seconds;
  const double bytes = figures.work.bytes / step_seconds;
  std::string text = number_text(flops / kTera) + " TFLOP/s, " +
                     share_text(flops, figures.ceilings.product_flops_per_second) + " of the " +
                     number_text(figures.ceilings.product_flops_per_second / kTera) +
                     " of a large product; at least " + number_text(bytes / kTera) + " TB/s, " +
                     share_text(bytes, figures.ceilings.copy_bytes_per_second) + " of the " +
                     number_text(figures.ceilings.copy_bytes_per_second / kTera) +
                     " of a large copy; ";
  if (figures.busy.empty()) return text + "the driver does not report how busy it was";
  return text + number_text(100.0 * median(figures.busy)) + "% busy, " +
         number_text(figures.memory_bytes / (1 << 30)) + " GiB in use";
}

nlohmann::json figures_json(const DeviceFigures& figures, double step_seconds) {
  nlohmann::json document = {
      {"step_flops", figures.work.flops},
      {"step_bytes", figures.work.bytes},
      {"flops_per_second", figures.work.flops / step_seconds},
      {"bytes_per_second", figures.work.bytes / step_seconds},
      {"ceiling_flops_per_second", figures.ceilings.product_flops_per_second},
      {"ceiling_bytes_per_second", figures.ceilings.copy_bytes_per_second}};
  if (!figures.busy.empty()) {
    document["busy"] = median(figures.busy);
    document["memory_bytes"] = figures.memory_bytes;
  }
  return document;
}

}  // namespace syncopate::bench
