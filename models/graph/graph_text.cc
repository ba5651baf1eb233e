#include "models/graph/graph_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

// Bounds of the sizes in a text, so that no product of them overflows 64 bits.
constexpr std::int64_t kMostChannels = 1 << 24;
constexpr std::int64_t kLargestSide = 1 << 16;  // of an input, in pixels
constexpr std::int64_t kLargestWindow = 1 << 7;
constexpr std::int64_t kMostElements = std::int64_t{1} << 36;  // of a value or parameter

constexpr std::array kDTypes = {DType::kU8, DType::kU16, DType::kF32};
constexpr std::array kLosses = {LossKind::kSoftmaxCrossEntropy};
constexpr std::array<std::pair<Init, std::string_view>, 4> kInits = {
    {{Init::kZeros, "zeros"},
     {Init::kOnes, "ones"},
     {Init::kHeUniform, "he-uniform"},
     {Init::kGlorotUniform, "glorot-uniform"}}};

// Returns the number with the fewest digits that is read back as the same float.
Json shortest(float value) { return Json(std::strtod(fmt::format("{}", value).c_str(), nullptr)); }

Json shortest(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(shortest(value));
  return list;
}

std::string_view name_of(Init init) {
  for (const auto& [each, name] : kInits) {
    if (each == init) return name;
  }
  throw InternalError("an initial distribution has a name");
}

// Adds the operation and its fields to the JSON of a node.
class Writer {
 public:
  Writer(const Graph& graph, const Node& node, Json& json)
      : graph_(graph), node_(node), json_(json) {}

  void operator()(const InputOp& op) const {
    json_["op"] = "input";
    json_["shape"] = node_.shape;
    json_["dtype"] = name(op.dtype);
    json_["mean"] = shortest(op.mean);
    json_["stddev"] = shortest(op.stddev);
  }
  void operator()(const Conv2dOp& op) const {
    json_["op"] = "conv2d";
    json_["channels"] = node_.shape.back();
    json_["kernel"] = {op.kernel_h, op.kernel_w};
    json_["stride"] = op.stride;
    json_["pad"] = op.pad;
    json_["bias"] = op.bias;
  }
  void operator()(const BatchNormOp& op) const {
    json_["op"] = "batch_norm";
    json_["epsilon"] = shortest(op.epsilon);
    json_["momentum"] = shortest(op.momentum);
  }
  void operator()(const ReluOp& /*op*/) const { json_["op"] = "relu"; }
  void operator()(const MaxPoolOp& op) const {
    json_["op"] = "max_pool";
    json_["window"] = op.window;
    json_["stride"] = op.stride;
    json_["pad"] = op.pad;
  }
  void operator()(const GlobalAveragePoolOp& /*op*/) const { json_["op"] = "global_average_pool"; }
  void operator()(const FlattenOp& /*op*/) const { json_["op"] = "flatten"; }
  void operator()(const DenseOp& /*op*/) const {
    json_["op"] = "dense";
    json_["features"] = node_.shape.back();
    const auto weight = static_cast<std::size_t>(node_.parameters.front());
    json_["init"] = name_of(graph_.parameters[weight].init);
  }
  void operator()(const AddOp& /*op*/) const { json_["op"] = "add"; }
  void operator()(const ShortcutOp& op) const {
    json_["op"] = "shortcut";
    json_["channels"] = node_.shape.back();
    json_["stride"] = op.stride;
  }
  void operator()(const LossOp& op) const {
    json_["op"] = name(op.kind);
    if (op.label_smoothing != 0.0F) json_["label_smoothing"] = shortest(op.label_smoothing);
  }

 private:
  const Graph& graph_;
  const Node& node_;
  Json& json_;
};

// Reads one node of a text and adds it to the graph.
class Reader {
 public:
  Reader(const Json& json, NodeId number, GraphBuilder& build)
      : json_(json), number_(number), build_(build) {}

  NodeId add() const;
  // Reads the last node, the loss, and returns the finished graph.
  Graph finish() const;

 private:
  struct Row {
    std::string_view op;
    std::size_t inputs;
    NodeId (Reader::*add)() const;
  };
  static const std::array<Row, 10> kRows;

  [[noreturn]] void refuse(const std::string& what) const {
    throw UsageError(fmt::format("node {} of the network's text: {}", number_, what));
  }
  template <typename T>
  T get(const char* key) const {
    try {
      return json_.at(key).get<T>();
    } catch (const nlohmann::json::exception&) {
      refuse(fmt::format("'{}' is missing or of another type", key));
    }
  }
  // Returns the whole numbers of a list; a number with a fraction or exponent is refused.
  std::vector<std::int64_t> integers(const char* key) const {
    std::vector<std::int64_t> numbers;
    for (const Json& number : get<std::vector<Json>>(key)) {
      if (!number.is_number_integer()) refuse(fmt::format("'{}' has no whole numbers", key));
      numbers.push_back(number.get<std::int64_t>());
    }
    return numbers;
  }
  std::int64_t size(const char* key, std::int64_t least, std::int64_t most) const {
    const Json number = get<Json>(key);
    if (!number.is_number_integer()) refuse(fmt::format("'{}' is no whole number", key));
    return check_size(key, number.get<std::int64_t>(), least, most);
  }
  std::int64_t check_size(const char* key, std::int64_t value, std::int64_t least,
                          std::int64_t most) const {
    if (value >= least && value <= most) return value;
    refuse(fmt::format("'{}' is {}; expected {} to {}", key, value, least, most));
  }
  int window(const char* key, std::int64_t least = 1) const {
    return static_cast<int>(size(key, least, kLargestWindow));
  }
  int channels(const char* key) const { return static_cast<int>(size(key, 1, kMostChannels)); }
  std::vector<float> finite(const char* key) const {
    auto values = get<std::vector<float>>(key);
    for (const float value : values) {
      if (!std::isfinite(value)) refuse(fmt::format("'{}' is not finite", key));
    }
    return values;
  }
  NodeId input_of(std::size_t place) const {
    const std::int64_t id = integers("inputs").at(place);
    if (id >= 0 && id < number_) return static_cast<NodeId>(id);
    refuse(fmt::format("input {} is no earlier node", id));
  }
  std::string name() const { return get<std::string>("name"); }

  NodeId input() const;
  NodeId conv2d() const;
  NodeId batch_norm() const;
  NodeId relu() const { return build_.relu(input_of(0)); }
  NodeId max_pool() const {
    return build_.max_pool(
        input_of(0),
        {.window = window("window"), .stride = window("stride"), .pad = window("pad", 0)});
  }
  NodeId global_average_pool() const { return build_.global_average_pool(input_of(0)); }
  NodeId flatten() const { return build_.flatten(input_of(0)); }
  NodeId dense() const;
  NodeId sum() const { return build_.add(input_of(0), input_of(1)); }
  NodeId shortcut() const {
    return build_.shortcut(input_of(0), window("stride"), channels("channels"));
  }

  const Json& json_;
  const NodeId number_;
  GraphBuilder& build_;
};

const std::array<Reader::Row, 10> Reader::kRows = {
    {{"input", 0, &Reader::input},
     {"conv2d", 1, &Reader::conv2d},
     {"batch_norm", 1, &Reader::batch_norm},
     {"relu", 1, &Reader::relu},
     {"max_pool", 1, &Reader::max_pool},
     {"global_average_pool", 1, &Reader::global_average_pool},
     {"flatten", 1, &Reader::flatten},
     {"dense", 1, &Reader::dense},
     {"add", 2, &Reader::sum},
     {"shortcut", 1, &Reader::shortcut}}};

NodeId Reader::add() const {
  const auto op = get<std::string>("op");
  const auto inputs = integers("inputs");
  for (const Row& row : kRows) {
    if (row.op != op) continue;
    if (inputs.size() != row.inputs) {
      refuse(fmt::format("{} has {} inputs; expected {}", op, inputs.size(), row.inputs));
    }
    const NodeId id = (this->*row.add)();
    if (num_elements(build_.shape(id)) > kMostElements) refuse("its output is too large");
    return id;
  }
  refuse("'" + op + "' is no operation of this program");
}

Graph Reader::finish() const {
  const auto op = get<std::string>("op");
  for (const LossKind kind : kLosses) {
    if (syncopate::name(kind) != op) continue;
    if (integers("inputs").size() != 1) refuse(op + " has one input");
    LossOp loss{.kind = kind};
    if (json_.contains("label_smoothing")) loss.label_smoothing = get<float>("label_smoothing");
    if (!(loss.label_smoothing >= 0.0F && loss.label_smoothing < 1.0F)) {
      refuse("'label_smoothing' is not in [0, 1)");
    }
    return build_.finish(input_of(0), loss);
  }
  refuse("the last node is '" + op + "'; expected a loss of this program");
}

NodeId Reader::input() const {
  const auto text = get<std::string>("dtype");
  InputOp op{.mean = finite("mean"), .stddev = finite("stddev")};
  bool is_known = false;
  for (const DType dtype : kDTypes) {
    if (syncopate::name(dtype) != text) continue;
    op.dtype = dtype;
    is_known = true;
  }
  if (!is_known) refuse("the dtype '" + text + "' is not known");
  for (const float deviation : op.stddev) {
    if (deviation <= 0.0F) refuse("'stddev' is not positive");
  }
  Shape shape = integers("shape");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    check_size("shape", shape[i], 1, i + 1 == shape.size() ? kMostChannels : kLargestSide);
    if (i == 3) refuse("'shape' has more than 3 sides");
  }
  return build_.input(std::move(shape), std::move(op), name());
}

NodeId Reader::conv2d() const {
  const auto kernel = integers("kernel");
  if (kernel.size() != 2) refuse("'kernel' has not 2 sides");
  for (const std::int64_t side : kernel) check_size("kernel", side, 1, kLargestWindow);
  return build_.conv2d(input_of(0), name(), channels("channels"),
                       {.kernel_h = static_cast<int>(kernel[0]),
                        .kernel_w = static_cast<int>(kernel[1]),
                        .stride = window("stride"),
                        .pad = window("pad", 0),
                        .bias = get<bool>("bias")});
}

NodeId Reader::batch_norm() const {
  const auto epsilon = get<float>("epsilon");
  const auto momentum = get<float>("momentum");
  if (!(epsilon > 0.0F && epsilon < 1.0F && momentum >= 0.0F && momentum <= 1.0F)) {
    refuse("'epsilon' or 'momentum' is not between 0 and 1");
  }
  return build_.batch_norm(input_of(0), name(), {.epsilon = epsilon, .momentum = momentum});
}

NodeId Reader::dense() const {
  const auto text = get<std::string>("init");
  for (const auto& [init, init_name] : kInits) {
    if (init_name == text) return build_.dense(input_of(0), name(), channels("features"), init);
  }
  refuse("the initial distribution '" + text + "' is not known");
}

}  // namespace

std::string to_text(const Graph& graph) {
  Json nodes = Json::array();
  for (const Node& node : graph.nodes) {
    Json json;
    std::visit(Writer(graph, node, json), node.operation);
    if (!node.name.empty()) json["name"] = node.name;
    json["inputs"] = node.inputs;
    nodes.push_back(std::move(json));
  }
  return Json{{"name", graph.name}, {"nodes", std::move(nodes)}}.dump();
}

Graph parse_graph(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string() ||
      !json.contains("nodes") || !json["nodes"].is_array() || json["nodes"].empty()) {
    throw UsageError("the network's text is no JSON object with a name and nodes");
  }
  const Json& nodes = json["nodes"];
  GraphBuilder build(json["name"].get<std::string>());
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    Reader(nodes[i], static_cast<NodeId>(i), build).add();
  }
  return Reader(nodes.back(), static_cast<NodeId>(nodes.size()) - 1, build).finish();
}

std::string network_hash(std::string_view text) { return fmt::format("{:016x}", hash_name(text)); }

}  // namespace syncopate
