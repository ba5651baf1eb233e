// Reads the text of a network: from a checkpoint, and from the file of a user.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "models/graph/network_json.h"
#include "models/graph/node_reader.h"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

// With the bounds of single sizes, these keep products of sizes below 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 36;    // of a value, for one sample
constexpr std::int64_t kMostParameters = std::int64_t{1} << 34;  // of a network
constexpr std::size_t kLongestName = 200;

// The nodes of the text that are part of the graph already. Numbers count the nodes of the text; a
// node of the text may be several of the graph.
struct Nodes {
  std::map<std::string, NodeId, std::less<>> numbers;  // by name
  std::vector<NodeId> ids;                             // in the graph
  std::vector<bool> is_read;                           // by a later node
  std::int64_t num_parameters = 0;
  bool has_classifier = false;  // a layer gives the classes of the data
};

// Reads one node of a text and adds it to the graph.
class Reader : private NodeReader {
 public:
  Reader(const NetworkText& source, NodeId number, GraphBuilder& build, Nodes& nodes)
      : NodeReader(source, number), build_(build), nodes_(nodes) {}

  void add();
  // Reads the last node, the loss, and returns the finished graph.
  Graph finish();

 private:
  [[noreturn]] void refuse_unread();
  void read_name();
  void read_inputs(std::size_t count);
  NodeId number_of_input(const Json& value) const;

  bool is_input_of_data() const { return op_ == "input" && text_.data != nullptr; }
  // Takes the input of the data in place of one that a network file describes.
  void take_input_of_data(std::span<const Field> fields, NodeDraft& node) const;
  // Refuses a shape of samples that is not the data's.
  void check_shape_of_data(Shape wanted) const;
  // Refuses a node if its output or its parameters, from `first_parameter` on, are too large.
  void check_sizes(NodeId id, std::size_t first_parameter);
  // Refuses a network if its loss or last values do not fit the data's targets.
  void check_logits(LossKind loss) const;
  // Calls add() with messages that name the line of the node.
  template <typename Add>
  auto located_errors(const Add& add) const;

  GraphBuilder& build_;
  Nodes& nodes_;
  std::vector<NodeId> inputs_;  // in the graph
};

void Reader::read_name() {
  if (!has("name") && !is_input_of_data()) return;
  const auto given = has("name") ? get<std::string>("name", "a text") : "x";
  const auto is_allowed = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == '.' ||
           letter == '/';
  };
  if (given.empty() || given.size() > kLongestName || !std::ranges::all_of(given, is_allowed)) {
    refuse(fmt::format("the name {} is not of 1 to {} letters, digits and _ - . /",
                       shown(json_["name"]), kLongestName));
  }
  if (given.starts_with("optimizer.")) {
    refuse("the name begins with 'optimizer.', as those of the optimizer's values in checkpoints");
  }
  const auto [other, is_new] = nodes_.numbers.emplace(given, number_);
  if (!is_new) {
    refuse(fmt::format("the name '{}' is that of node {}, too", given, other->second));
  }
  name_ = given;
}

NodeId Reader::number_of_input(const Json& value) const {
  if (value.is_string()) {
    const auto& wanted = value.get_ref<const std::string&>();
    const auto found = nodes_.numbers.find(wanted);
    if (found != nodes_.numbers.end() && found->second < number_) return found->second;
    refuse(fmt::format("input '{}' is not the name of an earlier node", wanted));
  }
  if (number_ == 0) refuse("'inputs' is not empty, and there is no earlier node");
  return static_cast<NodeId>(integer("inputs", value, 0, number_ - 1));
}

void Reader::read_inputs(std::size_t count) {
  std::vector<NodeId> numbers;
  if (has("inputs")) {
    const Json& list = json_["inputs"];
    const std::size_t least = count == kSeveralInputs ? 2 : count;
    if (!list.is_array() || list.size() < least || list.size() > count) {
      refuse(fmt::format("'inputs' is {}; expected a list of {}", shown(list),
                         least == count ? fmt::format("{}", count) : "two or more"));
    }
    for (const Json& value : list) numbers.push_back(number_of_input(value));
  } else if (count > 1) {
    refuse("'inputs' is missing; expected a list of nodes");
  } else if (count == 1) {
    if (number_ == 0) refuse("there is no node before it; the first node is {\"op\": \"input\"}");
    numbers = {number_ - 1};
  }
  for (const NodeId number : numbers) {
    nodes_.is_read[static_cast<std::size_t>(number)] = true;
    inputs_.push_back(nodes_.ids[static_cast<std::size_t>(number)]);
  }
}

// Returns the message of GraphBuilder without its beginning, which names operation and node.
std::string without_place(const ShapeError& error) {
  const std::string what = error.what();
  const std::size_t colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

template <typename Add>
auto Reader::located_errors(const Add& add) const {
  try {
    return add();
  } catch (const ShapeError& error) {
    throw ShapeError(located(without_place(error)));
  }
}

void Reader::add() {
  const OperationRow* const row = read_op("the name of an operation");
  read_name();
  if (row == nullptr) {
    std::vector<std::string_view> known;
    for (const OperationRow& each : operation_rows()) {
      if (each.add != nullptr) known.push_back(each.name);
    }
    refuse(
        fmt::format("no such operation; choose one of {}, or for the last node a loss such as {}",
                    fmt::join(known, ", "), name(LossOp().kind)));
  }
  if (row->add == nullptr) refuse("a loss is the last node, and more nodes follow");
  NodeDraft node{.operation = row->defaults, .name = name_};
  const std::vector<Field> fields = row->fields(node);
  check_fields(fields);
  read_inputs(row->inputs);
  node.inputs = inputs_;
  const std::size_t first_parameter = build_.parameters().size();
  const NodeId id = located_errors([&] {
    is_input_of_data() ? take_input_of_data(fields, node) : read_fields(fields);
    if (name_.empty() && !row->why_named.empty()) {
      refuse(fmt::format("'name' is missing; {}", row->why_named));
    }
    return row->add(build_, node);
  });
  if (node.classes_of != nullptr && std::holds_alternative<DenseOp>(node.operation)) {
    nodes_.has_classifier = true;
  }
  check_sizes(id, first_parameter);
  nodes_.ids.push_back(id);
  nodes_.is_read.push_back(false);
}

void Reader::check_sizes(NodeId id, std::size_t first_parameter) {
  std::int64_t elements = 1;
  for (const std::int64_t side : build_.shape(id)) {
    if (!__builtin_mul_overflow(elements, side, &elements) && elements <= kMostElements) continue;
    refuse(fmt::format("its output is {} for one sample; expected at most {} elements",
                       to_string(build_.shape(id)), kMostElements));
  }
  for (const Parameter& parameter : build_.parameters().subspan(first_parameter)) {
    const std::int64_t size = num_elements(parameter.shape);
    nodes_.num_parameters += size;
    if (nodes_.num_parameters <= kMostParameters) continue;
    refuse(fmt::format("{} has {} elements; expected at most {} parameters in a network",
                       parameter.name, size, kMostParameters));
  }
}

void Reader::check_logits(LossKind loss) const {
  const std::string why = why_loss_does_not_fit(loss, text_.data->target_dtype);
  if (!why.empty()) refuse(why);
  const Shape& found = build_.shape(inputs_[0]);
  const Shape expected = text_.data->logits_shape();
  if (found == expected) return;
  refuse(fmt::format("expected {} {}, {} of the data; found {}",
                     has_classes(loss) ? "logits" : "outputs", to_string(expected),
                     !has_classes(loss)     ? "one per number"
                     : expected.size() == 1 ? "one per class"
                                            : "one per pixel and class",
                     to_string(found)));
}

Graph Reader::finish() {
  const OperationRow* const row = read_op("the name of a loss");
  read_name();
  if (row == nullptr || row->add != nullptr) {
    const LossOp fitting = text_.data == nullptr ? LossOp{} : text_.data->loss();
    refuse(
        fmt::format("the last node is no loss; expected {{\"op\": \"{}\"}}", name(fitting.kind)));
  }
  NodeDraft node{.operation = row->defaults};
  const LossOp& loss = std::get<LossOp>(node.operation);
  if (text_.data != nullptr && has_classes(loss.kind) && has("label_smoothing")) {
    refuse("'label_smoothing' is a flag of train, --label-smoothing");
  }
  std::vector<Field> fields = row->fields(node);
  // Nothing smooths numbers, and a flag of train smooths the labels of data.
  if (text_.data != nullptr || !has_classes(loss.kind)) fields.clear();
  check_fields(fields);
  read_inputs(1);
  read_fields(fields);
  if (text_.data != nullptr) check_logits(loss.kind);
  for (std::size_t i = 0; i < nodes_.is_read.size(); ++i) {
    if (!nodes_.is_read[i]) Reader(text_, static_cast<NodeId>(i), build_, nodes_).refuse_unread();
  }
  if (text_.data != nullptr && !text_.data->head.empty() && !nodes_.has_classifier) {
    refuse(
        "--head adds layers before the dense layer with \"features\": \"classes\", and there is "
        "none");
  }
  if (text_.data != nullptr && build_.parameters().empty()) {
    refuse("no layer has parameters, so there is nothing to train; add a dense layer");
  }
  return located_errors([&] { return build_.finish(inputs_[0], loss); });
}

void Reader::refuse_unread() {
  op_ = json_["op"].get<std::string>();
  if (has("name")) name_ = json_["name"].get<std::string>();
  refuse("no later node reads it");
}

void Reader::take_input_of_data(std::span<const Field> fields, NodeDraft& node) const {
  for (const char* const key : {"dtype", "mean", "stddev"}) {
    if (has(key)) refuse("dtype, mean and stddev come from --data and --normalize; leave them out");
  }
  if (has("shape")) {
    read_fields(fields.first(1));
    check_shape_of_data(node.shape);
  }
  const bool is_plane = node.shape.size() == 2;
  node.operation = text_.data->input;
  node.shape = text_.data->sample_shape;
  if (is_plane) node.shape.pop_back();
  node.name = "x";  // the name in the file is for the nodes that read it
}

// A network file may name the only shape of samples that its network was made for.
void Reader::check_shape_of_data(Shape wanted) const {
  if (wanted.size() == 2) wanted.push_back(1);
  const Shape& found = text_.data->sample_shape;
  if (wanted == found) return;
  const bool has_size = text_.data->takes_image_size && wanted.size() == 3 && found.size() == 3 &&
                        wanted[2] == found[2];
  const std::string size = !has_size                ? ""
                           : wanted[0] == wanted[1] ? std::to_string(wanted[0])
                                                    : fmt::format("{}x{}", wanted[0], wanted[1]);
  refuse(
      fmt::format("the network is one for samples of {}, and the data have {}; {}, or take "
                  "\"shape\" out of the file if the network fits both",
                  fmt::join(wanted, "x"), fmt::join(found, "x"),
                  has_size ? "give --image-size " + size : "give data of that shape"));
}

Graph read_graph(std::string_view text, NetworkText source) {
  source.lines = check_network_json(text, source.path);
  const Json json = Json::parse(text);
  source.json = &json;
  GraphBuilder build(json["name"].get<std::string>());
  const auto last = static_cast<NodeId>(json["nodes"].size()) - 1;
  Nodes nodes;
  for (NodeId i = 0; i < last; ++i) Reader(source, i, build, nodes).add();
  return Reader(source, last, build, nodes).finish();
}

}  // namespace

Graph parse_graph(std::string_view text) { return read_graph(text, {}); }

Graph parse_network_file(std::string_view text, const std::string& path, const NetworkInput& data) {
  return read_graph(text, {.path = path, .data = &data});
}

}  // namespace syncopate
