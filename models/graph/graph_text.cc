#include "models/graph/graph_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/base/random.h"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

// Returns the number with the fewest digits that is read back as the same float.
Json shortest(float value) { return Json(std::strtod(fmt::format("{}", value).c_str(), nullptr)); }

Json shortest(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(shortest(value));
  return list;
}

// Returns the shape of an input: [H, W] for a map [H, W, 1] that is a plane.
Shape shape_in_text(const Node& input) {
  Shape shape = input.shape;
  if (std::get<InputOp>(input.operation).is_plane) shape.pop_back();
  return shape;
}

// Adds the fields of the operation to the JSON of a node.
class Writer {
 public:
  Writer(const Graph& graph, const Node& node, Json& json)
      : graph_(graph), node_(node), json_(json) {}

  void operator()(const InputOp& op) const {
    json_["shape"] = shape_in_text(node_);
    json_["dtype"] = name(op.dtype);
    json_["mean"] = shortest(op.mean);
    json_["stddev"] = shortest(op.stddev);
  }
  void operator()(const Conv2dOp& op) const {
    write_convolution(op);
    // Texts of earlier versions have no groups.
    if (op.groups != 1) json_["groups"] = op.groups;
  }
  void operator()(const ConvTranspose2dOp& op) const { write_convolution(op); }
  void operator()(const BatchNormOp& op) const {
    json_["epsilon"] = shortest(op.epsilon);
    json_["momentum"] = shortest(op.momentum);
  }
  void operator()(const LayerNormOp& op) const { json_["epsilon"] = shortest(op.epsilon); }
  void operator()(const DropoutOp& op) const { json_["rate"] = shortest(op.rate); }
  void operator()(const ReluOp& /*op*/) const {}
  void operator()(const MaxPoolOp& op) const {
    json_["window"] = op.window;
    json_["stride"] = op.stride;
    json_["pad"] = op.pad;
  }
  void operator()(const ActivationOp& op) const {
    if (op.kind == Activation::kClip) {
      json_["low"] = shortest(op.low);
      json_["high"] = shortest(op.high);
    } else if (op.kind == Activation::kLinear) {
      json_["factor"] = shortest(op.factor);
      json_["offset"] = shortest(op.offset);
    }
  }
  void operator()(const AveragePoolOp& op) const {
    json_["window"] = op.window;
    json_["stride"] = op.stride;
    json_["pad"] = op.pad;
  }
  void operator()(const GlobalAveragePoolOp& /*op*/) const {}
  void operator()(const FlattenOp& /*op*/) const {}
  void operator()(const DenseOp& op) const {
    json_["features"] = node_.shape.back();
    // Texts of earlier versions have no such field.
    if (!op.bias) json_["bias"] = false;
    const auto weight = static_cast<std::size_t>(node_.parameters.front());
    json_["init"] = name(graph_.parameters[weight].init);
  }
  void operator()(const AddOp& /*op*/) const {}
  void operator()(const MultiplyOp& /*op*/) const {}
  void operator()(const ConcatOp& /*op*/) const {}
  void operator()(const SliceOp& op) const {
    json_["first"] = op.first;
    json_["count"] = node_.shape.back();
  }
  void operator()(const UpsampleOp& op) const {
    json_["scale"] = op.scale;
    json_["mode"] = name(op.mode);
  }
  void operator()(const SoftmaxOp& /*op*/) const {}
  void operator()(const ReshapeOp& /*op*/) const { json_["shape"] = node_.shape; }
  void operator()(const TransposeOp& op) const { json_["order"] = op.order; }
  void operator()(const ReduceMeanOp& op) const {
    json_["axes"] = Json::array();
    for (std::size_t i = 0; i < op.axes.size(); ++i) {
      if (op.axes[i]) json_["axes"].push_back(i);
    }
  }
  void operator()(const MatmulOp& /*op*/) const {}
  void operator()(const ShortcutOp& op) const {
    json_["channels"] = node_.shape.back();
    json_["stride"] = op.stride;
  }
  void operator()(const LossOp& op) const {
    if (op.label_smoothing != 0.0F) json_["label_smoothing"] = shortest(op.label_smoothing);
  }

 private:
  // Op: Conv2dOp or ConvTranspose2dOp.
  template <typename Op>
  void write_convolution(const Op& op) const {
    json_["channels"] = node_.shape.back();
    json_["kernel"] = {op.kernel_h, op.kernel_w};
    json_["stride"] = op.stride;
    if (op.pad.is_one_number()) {
      json_["pad"] = op.pad.top;
    } else {
      json_["pad"] = {op.pad.top, op.pad.left, op.pad.bottom, op.pad.right};
    }
    json_["bias"] = op.bias;
  }

  const Graph& graph_;
  const Node& node_;
  Json& json_;
};

Json node_as_json(const Graph& graph, const Node& node) {
  Json json = {{"op", name(node.operation)}};
  std::visit(Writer(graph, node, json), node.operation);
  if (!node.name.empty()) json["name"] = node.name;
  return json;
}

// Names the nodes of a network file: a node without parameters that another than the next one reads
// gets a name, so that a line that is inserted later changes no input.
class NodeNames {
 public:
  explicit NodeNames(const Graph& graph) {
    for (const Node& node : graph.nodes) names_.push_back(node.name);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (reads_the_node_before(graph, i)) continue;
      for (const NodeId input : graph.nodes[i].inputs) {
        std::string& name = names_[static_cast<std::size_t>(input)];
        if (!name.empty()) continue;
        std::string chosen = fmt::format("node{}", input);
        while (std::ranges::find(names_, chosen) != names_.end()) chosen += "_";
        name = chosen;
      }
    }
  }

  static bool reads_the_node_before(const Graph& graph, std::size_t i) {
    const std::vector<NodeId>& inputs = graph.nodes[i].inputs;
    return inputs.empty() || (inputs.size() == 1 && inputs[0] + 1 == static_cast<NodeId>(i));
  }
  const std::string& of(NodeId id) const { return names_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<std::string> names_;
};

Json nodes_as_json(const Graph& graph) {
  Json nodes = Json::array();
  for (const Node& node : graph.nodes) {
    Json json = node_as_json(graph, node);
    json["inputs"] = node.inputs;
    nodes.push_back(std::move(json));
  }
  return nodes;
}

}  // namespace

std::string to_text(const Graph& graph) {
  return Json{{"name", graph.name}, {"nodes", nodes_as_json(graph)}}.dump();
}

std::string to_network_file(const Graph& graph, InputShape input_shape) {
  const NodeNames names(graph);
  std::string text = fmt::format("{{\n  \"name\": {},\n  \"nodes\": [", Json(graph.name).dump());
  const NodeId classifier = graph.nodes.back().inputs.front();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto id = static_cast<NodeId>(i);
    Json json = {{"op", name(node.operation)}};
    if (!names.of(id).empty()) json["name"] = names.of(id);
    if (!NodeNames::reads_the_node_before(graph, i)) {
      json["inputs"] = Json::array();
      for (const NodeId input : node.inputs) json["inputs"].push_back(names.of(input));
    }
    // The data give the input's fields, and train's flags the smoothing of labels.
    const bool is_given_elsewhere = std::holds_alternative<InputOp>(node.operation) ||
                                    std::holds_alternative<LossOp>(node.operation);
    if (!is_given_elsewhere) std::visit(Writer(graph, node, json), node.operation);
    if (input_shape == InputShape::kFixed && id == graph.inputs().front()) {
      json["shape"] = shape_in_text(node);
    }
    for (const char* const key : {"features", "channels"}) {
      if (id == classifier && json.contains(key)) json[key] = "classes";
    }
    text += fmt::format("{}\n    {{", i == 0 ? "" : ",");
    std::string_view separator;
    for (const auto& [key, value] : json.items()) {
      text += fmt::format("{}\"{}\": {}", separator, key, value.dump());
      separator = ", ";
    }
    text += "}";
  }
  return text + "\n  ]\n}\n";
}

std::string first_difference(Graph expected, Graph found) {
  for (Graph* graph : {&expected, &found}) {
    graph->set_label_smoothing(0.0F);
    for (const NodeId input : graph->inputs()) {
      auto& op = std::get<InputOp>(graph->nodes[static_cast<std::size_t>(input)].operation);
      op.mean.clear();
      op.stddev.clear();
    }
  }
  const Json wanted = nodes_as_json(expected);
  const Json given = nodes_as_json(found);
  const std::size_t both = std::min(wanted.size(), given.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (wanted[i] == given[i]) continue;
    return fmt::format("node {} is {}, found {}", i, wanted[i].dump(), given[i].dump());
  }
  if (wanted.size() == given.size()) return "";
  return fmt::format("{} nodes, found {}", wanted.size(), given.size());
}

std::string network_hash(std::string_view text) { return fmt::format("{:016x}", hash_name(text)); }

}  // namespace syncopate
