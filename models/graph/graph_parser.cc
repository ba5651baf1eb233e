// Reads the text of a network: that of a checkpoint, and the file of a user. The file is long
// because one class reads the fields of all operations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "models/graph/network_json.h"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

// Bounds of the sizes in a text, so that no product of them overflows 64 bits.
constexpr std::int64_t kMostChannels = 1 << 24;
constexpr std::int64_t kLargestSide = 1 << 16;                   // of an input, in pixels
constexpr std::int64_t kLargestMapSide = std::int64_t{1} << 30;  // of a map inside the network
constexpr std::int64_t kLargestWindow = 1 << 7;
constexpr std::int64_t kMostElements = std::int64_t{1} << 36;    // of a value, for one sample
constexpr std::int64_t kMostParameters = std::int64_t{1} << 34;  // of a network
constexpr std::size_t kLongestName = 200;

constexpr std::array kDTypes = {DType::kU8, DType::kU16, DType::kF32};
constexpr std::array kLosses = {LossKind::kSoftmaxCrossEntropy, LossKind::kBinaryCrossEntropy,
                                LossKind::kMeanSquaredError};
constexpr std::array kActivations = {
    Activation::kSigmoid,   Activation::kTanh,  Activation::kGelu,       Activation::kSilu,
    Activation::kHardSwish, Activation::kRelu6, Activation::kHardSigmoid};
constexpr std::array kInterpolations = {Interpolation::kNearest, Interpolation::kBilinear};
constexpr std::array kInits = {Init::kZeros, Init::kOnes, Init::kHeUniform, Init::kGlorotUniform};
constexpr const char* kClasses = "classes";

std::string_view loss_name(LossKind kind) { return name(kind); }

// Returns the JSON of a value for a message, cut if it is long.
std::string shown(const Json& value) {
  std::size_t size = 60;
  const std::string text = value.dump();
  if (text.size() <= size) return text;
  while ((text[size] & 0xC0) == 0x80) --size;  // inside a character of UTF-8
  return text.substr(0, size) + "...";
}

// A network's text. `data` is null for the text of a checkpoint.
struct NetworkText {
  Json json;
  std::string path;
  std::vector<int> lines;  // of each node, counted from 1
  const NetworkInput* data = nullptr;
};

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
class Reader {
 public:
  Reader(const NetworkText& source, NodeId number, GraphBuilder& build, Nodes& nodes)
      : text_(source),
        json_(source.json["nodes"][static_cast<std::size_t>(number)]),
        number_(number),
        build_(build),
        nodes_(nodes) {}

  void add();
  // Reads the last node, the loss, and returns the finished graph.
  Graph finish();

 private:
  static constexpr std::size_t kSeveral = 1000;  // inputs: two or more, up to this number
  struct Row {
    std::string_view op;
    std::size_t inputs;
    std::vector<std::string_view> fields;  // besides op, name and inputs
    NodeId (Reader::*add)() const;
  };
  static const std::vector<Row>& rows();

  // Returns a message with the place of the node in front.
  std::string located(const std::string& what) const;
  [[noreturn]] void refuse(const std::string& what) const { throw UsageError(located(what)); }
  [[noreturn]] void refuse_unread();
  void check_fields(std::span<const std::string_view> fields) const;
  void read_op(const char* expected);
  void read_name();
  void read_inputs(std::size_t count);
  NodeId number_of_input(const Json& value) const;
  // Adds the node to the graph, with messages that name its line.
  NodeId build_by(NodeId (Reader::*operation)() const) const;

  bool has(const char* key) const { return json_.contains(key); }
  template <typename T>
  T get(const char* key, std::string_view type) const {
    if (!has(key)) refuse(fmt::format("'{}' is missing; expected {}", key, type));
    try {
      return json_.at(key).get<T>();
    } catch (const nlohmann::json::exception&) {
      refuse(fmt::format("'{}' is {}; expected {}", key, shown(json_.at(key)), type));
    }
  }
  std::int64_t integer(const char* key, const Json& value, std::int64_t least,
                       std::int64_t most) const;
  // Returns a whole number; `otherwise` if the field is absent, unless that is negative.
  int size(const char* key, std::int64_t least, std::int64_t most, int otherwise = -1) const;
  int window(const char* key, int otherwise, std::int64_t least = 1) const {
    return size(key, least, kLargestWindow, otherwise);
  }
  Padding padding() const;
  // Reads the fields that both kinds of convolutions have.
  template <typename Op>
  Op convolution() const;
  int channels(const char* key) const {
    return gives_classes(key) ? text_.data->classes : size(key, 1, kMostChannels);
  }
  float epsilon() const;
  float between(const char* key, float otherwise, float least, float most) const;
  float number(const char* key, float otherwise) const {
    constexpr float kMost = std::numeric_limits<float>::max();
    return between(key, otherwise, -kMost, kMost);
  }
  // Returns the field "shape", whose sides but the last are at most `largest`.
  Shape shape(std::int64_t largest) const;
  // Returns the numbers of a list, each 0, 1 or 2 once.
  std::vector<int> axes(const char* key) const;
  std::vector<float> finite(const char* key) const;
  Init init(Init otherwise) const;
  const std::string& parameters_name() const {
    if (name_.empty()) refuse("'name' is missing; a node with parameters needs one");
    return name_;
  }
  // True if the layer gives the classes of the data.
  bool gives_classes(const char* key) const {
    return text_.data != nullptr && has(key) && json_[key] == kClasses;
  }
  void check_logits(LossKind loss) const;

  NodeId input() const;
  // Returns whether the shape is that of a plane, [H, W] for a map [H, W, 1].
  bool require_shape_of_data() const;
  NodeId conv2d() const;
  NodeId conv_transpose2d() const;
  NodeId batch_norm() const;
  NodeId layer_norm() const {
    return build_.layer_norm(inputs_[0], parameters_name(), {.epsilon = epsilon()});
  }
  NodeId dropout() const;
  NodeId relu() const { return build_.relu(inputs_[0]); }
  NodeId activation() const;
  NodeId max_pool() const {
    return build_.max_pool(
        inputs_[0],
        {.window = window("window", 2), .stride = window("stride", 2), .pad = window("pad", 0, 0)});
  }
  NodeId average_pool() const {
    return build_.average_pool(
        inputs_[0],
        {.window = window("window", 2), .stride = window("stride", 2), .pad = window("pad", 0, 0)});
  }
  NodeId global_average_pool() const { return build_.global_average_pool(inputs_[0]); }
  NodeId flatten() const { return build_.flatten(inputs_[0]); }
  NodeId dense() const;
  NodeId sum() const { return build_.add(inputs_[0], inputs_[1]); }
  NodeId product() const { return build_.multiply(inputs_[0], inputs_[1]); }
  NodeId concat() const { return build_.concat(inputs_); }
  NodeId clip() const;
  NodeId linear() const {
    return build_.linear(inputs_[0], number("factor", 1.0F), number("offset", 0.0F));
  }
  NodeId slice() const {
    return build_.slice(inputs_[0], size("first", 0, kMostChannels, 0),
                        size("count", 1, kMostChannels));
  }
  NodeId upsample2d() const;
  NodeId softmax() const { return build_.softmax(inputs_[0]); }
  NodeId reshape() const { return build_.reshape(inputs_[0], shape(kLargestMapSide)); }
  NodeId transpose() const;
  NodeId reduce_mean() const;
  NodeId matmul() const { return build_.matmul(inputs_[0], inputs_[1]); }
  NodeId shortcut() const {
    return build_.shortcut(inputs_[0], window("stride", 2), channels("channels"));
  }

  const NetworkText& text_;
  const Json& json_;
  const NodeId number_;
  GraphBuilder& build_;
  Nodes& nodes_;
  std::string op_;
  std::string name_;
  std::vector<NodeId> inputs_;  // in the graph
};

const std::vector<Reader::Row>& Reader::rows() {
  static const std::vector<Row> kRows = {
      {"input", 0, {"shape", "dtype", "mean", "stddev"}, &Reader::input},
      {"conv2d", 1, {"channels", "kernel", "stride", "pad", "bias", "groups"}, &Reader::conv2d},
      {"conv_transpose2d",
       1,
       {"channels", "kernel", "stride", "pad", "bias"},
       &Reader::conv_transpose2d},
      {"batch_norm", 1, {"epsilon", "momentum"}, &Reader::batch_norm},
      {"layer_norm", 1, {"epsilon"}, &Reader::layer_norm},
      {"dropout", 1, {"rate"}, &Reader::dropout},
      {"relu", 1, {}, &Reader::relu},
      {"sigmoid", 1, {}, &Reader::activation},
      {"tanh", 1, {}, &Reader::activation},
      {"gelu", 1, {}, &Reader::activation},
      {"silu", 1, {}, &Reader::activation},
      {"hard-swish", 1, {}, &Reader::activation},
      {"relu6", 1, {}, &Reader::activation},
      {"hard-sigmoid", 1, {}, &Reader::activation},
      {"clip", 1, {"low", "high"}, &Reader::clip},
      {"linear", 1, {"factor", "offset"}, &Reader::linear},
      {"max_pool", 1, {"window", "stride", "pad"}, &Reader::max_pool},
      {"average_pool", 1, {"window", "stride", "pad"}, &Reader::average_pool},
      {"global_average_pool", 1, {}, &Reader::global_average_pool},
      {"flatten", 1, {}, &Reader::flatten},
      {"dense", 1, {"features", "init", "bias"}, &Reader::dense},
      {"add", 2, {}, &Reader::sum},
      {"multiply", 2, {}, &Reader::product},
      {"concat", kSeveral, {}, &Reader::concat},
      {"slice", 1, {"first", "count"}, &Reader::slice},
      {"upsample2d", 1, {"scale", "mode"}, &Reader::upsample2d},
      {"softmax", 1, {}, &Reader::softmax},
      {"reshape", 1, {"shape"}, &Reader::reshape},
      {"transpose", 1, {"order"}, &Reader::transpose},
      {"reduce_mean", 1, {"axes"}, &Reader::reduce_mean},
      {"matmul", 2, {}, &Reader::matmul},
      {"shortcut", 1, {"channels", "stride"}, &Reader::shortcut}};
  return kRows;
}

std::string Reader::located(const std::string& what) const {
  const std::string node = name_.empty() ? fmt::format("{}", number_) : "'" + name_ + "'";
  const std::string op = op_.empty() ? "" : " (" + op_ + ")";
  const std::string place =
      text_.data == nullptr
          ? "the network's text"
          : fmt::format("{}:{}", text_.path, text_.lines[static_cast<std::size_t>(number_)]);
  return fmt::format("{}: node {}{}: {}", place, node, op, what);
}

void Reader::check_fields(std::span<const std::string_view> fields) const {
  for (const auto& [key, value] : json_.items()) {
    if (key == "op" || key == "name" || key == "inputs") continue;
    if (std::ranges::find(fields, key) == fields.end()) {
      refuse(fields.empty() ? fmt::format("'{}' is no field of {}, which has none", key, op_)
                            : fmt::format("'{}' is no field of {}; its fields are {}", key, op_,
                                          fmt::join(fields, ", ")));
    }
  }
}

void Reader::read_op(const char* expected) {
  if (!json_.is_object()) refuse("expected an object {\"op\": ...}");
  op_ = get<std::string>("op", expected);
}

void Reader::read_name() {
  const bool is_input_of_data = op_ == "input" && text_.data != nullptr;
  if (!has("name") && !is_input_of_data) return;
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
    const std::size_t least = count == kSeveral ? 2 : count;
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

std::int64_t Reader::integer(const char* key, const Json& value, std::int64_t least,
                             std::int64_t most) const {
  // An unsigned number above the range of std::int64_t is still one for nlohmann_json.
  const bool is_whole =
      value.is_number_integer() &&
      (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{1} << 62);
  if (is_whole && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most) {
    return value.get<std::int64_t>();
  }
  refuse(fmt::format("'{}' is {}; expected a whole number from {} to {}", key, shown(value), least,
                     most));
}

int Reader::size(const char* key, std::int64_t least, std::int64_t most, int otherwise) const {
  if (!has(key) && otherwise >= 0) return otherwise;
  if (!has(key)) refuse(fmt::format("'{}' is missing; expected a whole number", key));
  return static_cast<int>(integer(key, json_[key], least, most));
}

float Reader::between(const char* key, float otherwise, float least, float most) const {
  if (!has(key)) return otherwise;
  // nlohmann_json reads true as the number 1.
  const auto value = json_[key].is_number() ? get<float>(key, "a number") : least - 1.0F;
  if (value >= least && value <= most) return value;
  refuse(fmt::format("'{}' is {}; expected {} to {}", key, shown(json_[key]), least, most));
}

std::vector<float> Reader::finite(const char* key) const {
  auto values = get<std::vector<float>>(key, "a list of numbers");
  for (const float value : values) {
    if (!std::isfinite(value)) refuse(fmt::format("'{}' is not finite", key));
  }
  return values;
}

Init Reader::init(Init otherwise) const {
  if (!has("init")) return otherwise;
  const auto text = get<std::string>("init", "a text");
  std::string known;
  for (const Init each : kInits) {
    if (syncopate::name(each) == text) return each;
    known += (known.empty() ? "" : ", ") + std::string(syncopate::name(each));
  }
  refuse(fmt::format("the initial distribution '{}' is not known; choose one of {}", text, known));
}

// Returns the message of GraphBuilder without its beginning, which names operation and node.
std::string without_place(const ShapeError& error) {
  const std::string what = error.what();
  const std::size_t colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

NodeId Reader::build_by(NodeId (Reader::*operation)() const) const {
  try {
    return (this->*operation)();
  } catch (const ShapeError& error) {
    throw ShapeError(located(without_place(error)));
  }
}

void Reader::add() {
  read_op("the name of an operation");
  read_name();
  const auto row = std::ranges::find(rows(), op_, &Row::op);
  if (row == rows().end()) {
    if (std::ranges::find(kLosses, op_, loss_name) != kLosses.end()) {
      refuse("a loss is the last node, and more nodes follow");
    }
    std::vector<std::string_view> known;
    for (const Row& each : rows()) known.push_back(each.op);
    refuse(
        fmt::format("no such operation; choose one of {}, or for the last node a loss such as {}",
                    fmt::join(known, ", "), loss_name(kLosses.front())));
  }
  check_fields(row->fields);
  read_inputs(row->inputs);
  const std::size_t first_parameter = build_.parameters().size();
  const NodeId id = build_by(row->add);
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
  nodes_.ids.push_back(id);
  nodes_.is_read.push_back(false);
}

// Refuses a network whose loss or last values are not those that the data's targets want.
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
  read_op("the name of a loss");
  read_name();
  const auto kind = std::ranges::find(kLosses, op_, loss_name);
  if (kind == kLosses.end()) {
    const LossKind fitting = text_.data == nullptr ? kLosses.front() : text_.data->loss().kind;
    refuse(fmt::format("the last node is no loss; expected {{\"op\": \"{}\"}}", name(fitting)));
  }
  constexpr std::array kFields = {std::string_view("label_smoothing")};
  if (text_.data != nullptr && has_classes(*kind) && has("label_smoothing")) {
    refuse("'label_smoothing' is a flag of train, --label-smoothing");
  }
  const bool may_smooth = text_.data == nullptr && has_classes(*kind);
  check_fields(std::span(kFields).first(may_smooth ? 1 : 0));
  read_inputs(1);
  LossOp loss{.kind = *kind, .label_smoothing = between("label_smoothing", 0.0F, 0.0F, 1.0F)};
  if (loss.label_smoothing >= 1.0F) refuse("'label_smoothing' is 1; expected less");
  if (text_.data != nullptr) check_logits(*kind);
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
  try {
    return build_.finish(inputs_[0], loss);
  } catch (const ShapeError& error) {
    throw ShapeError(located(without_place(error)));
  }
}

void Reader::refuse_unread() {
  op_ = json_["op"].get<std::string>();
  if (has("name")) name_ = json_["name"].get<std::string>();
  refuse("no later node reads it");
}

NodeId Reader::input() const {
  if (text_.data != nullptr) {
    for (const char* const key : {"dtype", "mean", "stddev"}) {
      if (has(key))
        refuse("dtype, mean and stddev come from --data and --normalize; leave them out");
    }
    InputOp op = text_.data->input;
    if (has("shape")) op.is_plane = require_shape_of_data();
    // The name in the file is for the nodes that read it; data know their input as x.
    return build_.input(text_.data->sample_shape, std::move(op), "x");
  }
  const auto text = get<std::string>("dtype", "a text");
  InputOp op{.mean = finite("mean"), .stddev = finite("stddev")};
  const auto dtype =
      std::ranges::find(kDTypes, text, [](DType each) { return syncopate::name(each); });
  if (dtype == kDTypes.end()) refuse("the dtype '" + text + "' is not known");
  op.dtype = *dtype;
  for (const float deviation : op.stddev) {
    if (deviation <= 0.0F) refuse("'stddev' is not positive");
  }
  Shape sides = shape(kLargestSide);
  op.is_plane = sides.size() == 2;
  if (op.is_plane) sides.push_back(1);
  return build_.input(std::move(sides), std::move(op), parameters_name());
}

// A network file may name the only shape of samples that its network was made for.
bool Reader::require_shape_of_data() const {
  Shape wanted = shape(kLargestSide);
  const bool is_plane = wanted.size() == 2;
  if (is_plane) wanted.push_back(1);
  const Shape& found = text_.data->sample_shape;
  if (wanted == found) return is_plane;
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

Shape Reader::shape(std::int64_t largest) const {
  Shape shape;
  const auto sides = get<std::vector<Json>>("shape", "a list");
  if (sides.size() > 3) refuse("'shape' has more than 3 sides");
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const bool is_last = i + 1 == sides.size();
    shape.push_back(
        integer("shape", sides[i], 1, is_last ? std::max(largest, kMostChannels) : largest));
  }
  return shape;
}

std::vector<int> Reader::axes(const char* key) const {
  std::vector<int> axes;
  for (const Json& each : get<std::vector<Json>>(key, "a list")) {
    const auto axis = static_cast<int>(integer(key, each, 0, 2));
    if (std::ranges::find(axes, axis) != axes.end()) {
      refuse(fmt::format("'{}' has the axis {} twice", key, axis));
    }
    axes.push_back(axis);
  }
  return axes;
}

NodeId Reader::clip() const {
  if (!has("low") || !has("high")) refuse("'low' or 'high' is missing; expected both bounds");
  return build_.clip(inputs_[0], number("low", 0.0F), number("high", 0.0F));
}

NodeId Reader::upsample2d() const {
  UpsampleOp op{.scale = window("scale", 2)};
  if (has("mode")) {
    const auto text = get<std::string>("mode", "a text");
    const auto mode = std::ranges::find(kInterpolations, text,
                                        [](Interpolation each) { return syncopate::name(each); });
    if (mode == kInterpolations.end()) {
      refuse(fmt::format("the mode '{}' is not known; choose nearest or bilinear", text));
    }
    op.mode = *mode;
  }
  return build_.upsample2d(inputs_[0], op);
}

NodeId Reader::transpose() const {
  const std::vector<int> order = axes("order");
  if (order.size() != 3) refuse("'order' has not the 3 axes of a map, such as [1, 0, 2]");
  return build_.transpose(inputs_[0], {order[0], order[1], order[2]});
}

NodeId Reader::reduce_mean() const { return build_.reduce_mean(inputs_[0], axes("axes")); }

NodeId Reader::activation() const {
  const auto kind =
      std::ranges::find(kActivations, op_, [](Activation each) { return syncopate::name(each); });
  check(kind != kActivations.end(), "the operation is an activation");
  return build_.activation(inputs_[0], *kind);
}

Padding Reader::padding() const {
  if (!has("pad")) return {};
  const Json& pad = json_["pad"];
  const auto side = [&](const Json& value) {
    return static_cast<int>(integer("pad", value, 0, kLargestWindow));
  };
  if (!pad.is_array()) return side(pad);
  if (pad.size() != 4) refuse("'pad' has not 4 sides: top, left, bottom, right");
  return {side(pad[0]), side(pad[1]), side(pad[2]), side(pad[3])};
}

template <typename Op>
Op Reader::convolution() const {
  Op op;
  if (has("kernel")) {
    const Json& kernel = json_["kernel"];
    const bool is_pair = kernel.is_array() && kernel.size() == 2;
    if (kernel.is_array() && !is_pair) refuse("'kernel' has not 2 sides");
    op.kernel_h =
        static_cast<int>(integer("kernel", is_pair ? kernel[0] : kernel, 1, kLargestWindow));
    op.kernel_w =
        static_cast<int>(integer("kernel", is_pair ? kernel[1] : kernel, 1, kLargestWindow));
  }
  op.stride = window("stride", op.stride);
  op.pad = padding();
  if (has("bias")) op.bias = get<bool>("bias", "true or false");
  return op;
}

NodeId Reader::conv2d() const {
  auto op = convolution<Conv2dOp>();
  op.groups = size("groups", 1, kMostChannels, op.groups);
  return build_.conv2d(inputs_[0], parameters_name(), channels("channels"), op);
}

NodeId Reader::conv_transpose2d() const {
  return build_.conv_transpose2d(inputs_[0], parameters_name(), channels("channels"),
                                 convolution<ConvTranspose2dOp>());
}

float Reader::epsilon() const {
  const float epsilon = between("epsilon", 1e-5F, 0.0F, 1.0F);
  if (epsilon == 0.0F) refuse("'epsilon' is 0; expected more");
  return epsilon;
}

NodeId Reader::batch_norm() const {
  return build_.batch_norm(
      inputs_[0], parameters_name(),
      {.epsilon = epsilon(), .momentum = between("momentum", BatchNormOp().momentum, 0.0F, 1.0F)});
}

NodeId Reader::dropout() const {
  const float rate = between("rate", DropoutOp().rate, 0.0F, 1.0F);
  if (rate == 1.0F) refuse("'rate' is 1; expected less");
  if (name_.empty()) refuse("'name' is missing; the elements that are dropped depend on it");
  return build_.dropout(inputs_[0], name_, {.rate = rate});
}

NodeId Reader::dense() const {
  const Init distribution = init(Init::kGlorotUniform);
  DenseOp op;
  if (has("bias")) op.bias = get<bool>("bias", "true or false");
  if (gives_classes("features")) {
    nodes_.has_classifier = true;
    return add_classifier(build_, inputs_[0], parameters_name(), *text_.data, distribution, op);
  }
  return build_.dense(inputs_[0], parameters_name(), channels("features"), distribution, op);
}

Graph read_graph(std::string_view text, NetworkText source) {
  source.lines = check_network_json(text, source.path);
  source.json = Json::parse(text);
  GraphBuilder build(source.json["name"].get<std::string>());
  const auto last = static_cast<NodeId>(source.json["nodes"].size()) - 1;
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
