#include "models/graph/graph_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/base/random.h"
#include "models/graph/operation_row.h"

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
Shape shape_in_text(const Node& node) {
  Shape shape = node.shape;
  const auto* input = std::get_if<InputOp>(&node.operation);
  if (input != nullptr && input->is_plane) shape.pop_back();
  return shape;
}

Json json_of(const WholeField& field) { return *field.value; }
Json json_of(const ChannelsField& field) { return *field.value; }
Json json_of(const NumberField& field) { return shortest(*field.value); }
Json json_of(const FlagField& field) { return *field.value; }
Json json_of(const KernelField& field) { return {*field.height, *field.width}; }
Json json_of(const PaddingField& field) {
  const Padding& pad = *field.value;
  if (pad.is_one_number()) return pad.top;
  return {pad.top, pad.left, pad.bottom, pad.right};
}
Json json_of(const ShapeField& field) { return *field.value; }
Json json_of(const NumbersField& field) { return shortest(*field.value); }
Json json_of(const OrderField& field) { return *field.value; }
Json json_of(const AxesField& field) {
  Json axes = Json::array();
  for (std::size_t i = 0; i < field.value->size(); ++i) {
    if ((*field.value)[i]) axes.push_back(i);
  }
  return axes;
}
template <typename Enum>
Json json_of(const ChoiceField<Enum>& field) {
  return name(*field.value);
}

// Adds the fields of the node's operation to its JSON.
void write_fields(const Graph& graph, const Node& node, Json& json) {
  NodeDraft draft{.operation = node.operation,
                  .shape = shape_in_text(node),
                  .channels = node.shape.empty() ? 0 : static_cast<int>(node.shape.back())};
  if (!node.parameters.empty()) {
    draft.init = graph.parameters[static_cast<std::size_t>(node.parameters.front())].init;
  }
  const OperationRow& row = row_of(node.operation);
  if (row.fields == nullptr) return;
  for (const Field& field : row.fields(draft)) {
    if (!field.is_written) continue;
    json[field.key] = std::visit([](const auto& value) { return json_of(value); }, field.value);
  }
}

Json node_as_json(const Graph& graph, const Node& node) {
  Json json = {{"op", name(node.operation)}};
  write_fields(graph, node, json);
  if (!node.name.empty()) json["name"] = node.name;
  return json;
}

// Names the nodes of a network file. A node without parameters gets a name if another node than the
// next one reads it, so that a line that is inserted later changes no input.
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
    if (!is_given_elsewhere) write_fields(graph, node, json);
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
