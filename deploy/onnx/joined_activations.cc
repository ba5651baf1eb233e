// Activations that a file has as several nodes become one node, which the reader then takes.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "deploy/onnx/replaced_nodes.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

// One thread only.
class ActivationJoiner {
 public:
  explicit ActivationJoiner(OnnxFile& file) : graph_(file) { graph_.fold_constants(); }

  void join() {
    for (NodeProto& node : *graph_.file().mutable_graph().mutable_node()) {
      if (!is_standard(node) || node.op_type() != "Mul" || node.input_size() != 2 ||
          node.attribute_size() > 0) {
        continue;
      }
      if (!join_gated(node)) join_gelu(node);
    }
  }

 private:
  const NodeProto* writer(const std::string& value, std::string_view op, int inputs) const {
    const NodeProto* node = graph_.writer(value);
    const bool fits = node != nullptr && is_standard(*node) && node->op_type() == op &&
                      node->input_size() == inputs;
    return fits ? node : nullptr;
  }
  // Whether an input of a node is this number, which is not trained.
  bool is_number(const NodeProto& node, int index, double expected) const {
    const auto number = graph_.constants().number(node.input(index));
    if (!number || std::abs(*number - expected) >= 1e-3) return false;
    const std::string& tensor = graph_.constants().find(node.input(index))->source;
    return graph_.constants().origin(node, index) == OnnxOrigin::kFixed ||
           !graph_.constants().origins().is_named_as_parameter(node, tensor);
  }
  // Returns the other input of a node of two if one of them is this number.
  std::optional<std::string> beside(const NodeProto& node, double number) const {
    if (is_number(node, 0, number)) return node.input(1);
    if (is_number(node, 1, number)) return node.input(0);
    return std::nullopt;
  }
  static void replace(NodeProto& node, const char* op, const std::string& x) {
    const std::string input = x;  // `x` may be one of the inputs
    node.set_op_type(op);
    node.clear_input();
    node.add_input(input);
  }

  // x * Sigmoid(x) is SiLU, and x * HardSigmoid(x) with the slope 1/6 is the hard swish.
  bool join_gated(NodeProto& node) const {
    for (const int i : {0, 1}) {
      const std::string& x = node.input(1 - i);
      const NodeProto* gate = writer(node.input(i), "Sigmoid", 1);
      if (gate != nullptr && gate->input(0) == x) {
        node.set_domain(kJoinedDomain);
        return replace(node, "Silu", x), true;
      }
      gate = writer(node.input(i), "HardSigmoid", 1);
      if (gate == nullptr || gate->input(0) != x) continue;
      if (!is_hard_sigmoid(OnnxAttributes(graph_.file(), *gate))) continue;
      return replace(node, "HardSwish", x), true;
    }
    return false;
  }

  // GELU of opsets before 20: 0.5 * x * (1 + Erf(x / sqrt(2))), the factors in any order.
  void join_gelu(NodeProto& node) const {
    struct Factor {
      const NodeProto* product;
      int index;
    };
    std::vector<Factor> factors;
    for (const int i : {0, 1}) {
      const NodeProto* product = writer(node.input(i), "Mul", 2);
      if (product == nullptr) continue;
      factors = {{&node, 1 - i}, {product, 0}, {product, 1}};
      break;
    }
    if (factors.empty()) return;
    std::string x;
    std::string argument;
    bool has_half = false;
    for (const auto& [product, index] : factors) {
      const std::string& factor = product->input(index);
      const NodeProto* sum = writer(factor, "Add", 2);
      const auto inner = sum != nullptr ? beside(*sum, 1.0) : std::nullopt;
      const NodeProto* erf = inner ? writer(*inner, "Erf", 1) : nullptr;
      if (erf != nullptr) {
        argument = erf->input(0);
      } else if (is_number(*product, index, 0.5)) {
        has_half = true;
      } else {
        x = factor;
      }
    }
    if (has_half && !x.empty() && is_scaled(argument, x)) replace(node, "Gelu", x);
  }

  // Whether `value` is x / sqrt(2).
  bool is_scaled(const std::string& value, const std::string& x) const {
    if (const NodeProto* quotient = writer(value, "Div", 2)) {
      return quotient->input(0) == x && is_number(*quotient, 1, std::sqrt(2.0));
    }
    const NodeProto* product = writer(value, "Mul", 2);
    return product != nullptr && beside(*product, std::sqrt(0.5)) == x;
  }

  OnnxGraph graph_;
};

}  // namespace

bool is_hard_sigmoid(const OnnxAttributes& attributes) {
  constexpr float kRounding = 1e-5F;  // of a slope that is written with few digits
  return std::abs(attributes.number("alpha", 0.2F) - 1.0F / 6.0F) < kRounding &&
         attributes.number("beta", 0.5F) == 0.5F;
}

void join_activations(OnnxFile& file) { ActivationJoiner(file).join(); }

}  // namespace syncopate
