#include "deploy/onnx/onnx_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "deploy/onnx/layer_names.h"
#include "models/base/errors.h"
#include "models/base/lower_case.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::size_t kListedKinds = 12;
constexpr std::int64_t kMostOnnxElements = std::int64_t{1} << 36;

// Returns the message of GraphBuilder without the node's name in front.
std::string why(const ShapeError& error) {
  const std::string what = error.what();
  const std::size_t colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

bool is_of_adaptive_pool(const NodeProto& node) {
  return std::ranges::any_of(node.metadata_props(), [](const auto& entry) {
    const std::string text = lower_case(entry.value());
    return text.find("adaptiveavgpool") != text.npos || text.find("adaptivemaxpool") != text.npos ||
           text.find("adaptive_avg_pool") != text.npos ||
           text.find("adaptive_max_pool") != text.npos;
  });
}

}  // namespace

OnnxReader::OnnxReader(OnnxFile& file, std::string name)
    : file_(file), constants_(file), build_(std::move(name)) {}

OnnxNetwork OnnxReader::read() {
  find_values();
  // `export --onnx` writes the loss, which no node shows.
  for (const LossKind kind : {LossKind::kBinaryCrossEntropy, LossKind::kMeanSquaredError}) {
    if (file_.metadata("loss") == name(kind)) loss_ = kind;
  }
  drop_last_activation();
  const std::vector<const Node*> nodes = sorted_nodes();
  // Nodes that the output does not depend on read nothing.
  readers_.clear();
  for (const Node* node : nodes) {
    for (const std::string& input : node->input()) readers_[input].push_back(node);
  }
  // What depends on stored tensors alone comes first: a layer may need the bias of a later Add.
  for (const Node* node : nodes) constants_.fold(*node, [](const auto&) { return std::nullopt; });
  find_attention(nodes);
  add_input();
  for (const Node* node : nodes) add(*node);
  if (!missing_.empty()) throw_missing();
  note_folded_batch_norms();
  return finish();
}

void OnnxReader::find_values() {
  for (const Node& node : file_.graph().node()) {
    for (const std::string& output : node.output()) {
      if (output.empty()) continue;
      if (!writers_.emplace(output, &node).second) {
        file_.damaged(
            fmt::format("two nodes write the value {}; expected one", shown_name(output)));
      }
    }
    for (const std::string& input : node.input()) readers_[input].push_back(&node);
  }
  if (file_.graph().output_size() != 1) {
    std::vector<std::string> names;
    for (const auto& output : file_.graph().output()) names.push_back(shown_name(output.name()));
    throw UsageError(fmt::format("{}: {} outputs{}{}; expected one, the classes or numbers",
                                 file_.path().string(), names.size(), names.empty() ? "" : ", ",
                                 fmt::join(names, ", ")));
  }
  output_ = file_.graph().output(0).name();
}

std::vector<const NodeProto*> OnnxReader::sorted_nodes() const {
  struct Visit {
    const Node* node;
    int next_input = 0;
  };
  std::vector<const Node*> sorted;
  std::map<const Node*, bool> is_finished;
  std::vector<Visit> open;
  const auto enter = [&](const std::string& value) {
    const auto writer = writers_.find(value);
    if (writer == writers_.end()) return;
    const auto [state, is_new] = is_finished.emplace(writer->second, false);
    if (is_new) {
      open.push_back({writer->second});
    } else if (!state->second) {
      file_.damaged(
          fmt::format("node {} ({}) reads what it writes; expected a graph without cycles",
                      node_name(*writer->second), shown_name(writer->second->op_type())));
    }
  };
  enter(output_);
  while (!open.empty()) {
    Visit& visit = open.back();
    if (visit.next_input < visit.node->input_size()) {
      enter(visit.node->input(visit.next_input++));
      continue;
    }
    is_finished[visit.node] = true;
    sorted.push_back(visit.node);
    open.pop_back();
  }
  return sorted;
}

void OnnxReader::add(const Node& node) {
  if (joined_.contains(&node)) return;
  if (node.output_size() > 0 && constants_.find(node.output(0)) != nullptr) return;
  const auto known_shape = [&](const std::string& value) -> std::optional<Shape> {
    const auto found = values_.find(value);
    if (found == values_.end()) return std::nullopt;
    return shape_of(found->second);
  };
  if (constants_.fold(node, known_shape)) return;
  if (is_of_missing_shape(node)) {
    shapes_of_missing_.insert(node.output().begin(), node.output().end());
    return;
  }
  if (const auto trained = trained_inputs(node); !trained.empty()) {
    return add_missing(
        shown_name(operator_name(node)),
        fmt::format(" of {}, which may be trained; a weight computed from trained tensors (pruned, "
                    "scaled, normalised, a sum) is not trained as such here, so make it a "
                    "parameter before the export, such as by prune.remove()",
                    listed_names(trained)),
        node_name(node));
  }
  const std::string op = operator_name(node);
  const auto row = std::ranges::find(rows(), op, &Row::op);
  if (op.starts_with("Random") || op == "Bernoulli" || op == "Multinomial") {
    random_values_.insert(node.output().begin(), node.output().end());
    return refuse(node,
                  "of a random layer: export a dropout with inplace=False; stochastic depth, "
                  "Dropout2d and augmentation have no counterpart, so set their rate to 0, or "
                  "take them out");
  }
  if (row == rows().end() && node.input_size() > 0 && random_values_.contains(node.input(0))) {
    random_values_.insert(node.output().begin(), node.output().end());
    has_unchecked_ = true;  // what a random layer does with its random numbers goes with it
    return;
  }
  if (row == rows().end()) return refuse(node, "");
  add_known(node, *row, OnnxAttributes(file_, node));
}

std::vector<std::string> OnnxReader::trained_inputs(const Node& node) const {
  std::vector<std::string> trained;
  for (int i = 0; i < node.input_size(); ++i) {
    if (!has_input(node, i)) continue;
    if (constant(node, i) == nullptr) return {};
    if (constants_.origin(node, i) == OnnxOrigin::kFixed) continue;
    trained.push_back(shown_name(constant(node, i)->source));
  }
  return trained;
}

bool OnnxReader::is_of_missing_shape(const Node& node) const {
  const auto is_shape = [&](const std::string& input) {
    return shapes_of_missing_.contains(input);
  };
  const auto is_missing = [&](const std::string& input) {
    return !values_.contains(input) && constants_.find(input) == nullptr && !is_shape(input) &&
           writers_.contains(input);
  };
  if (operator_name(node) == "Shape") return std::ranges::any_of(node.input(), is_missing);
  return std::ranges::any_of(node.input(), is_shape) &&
         std::ranges::all_of(node.input(), [&](const std::string& input) {
           return input.empty() || is_shape(input) || constants_.find(input) != nullptr;
         });
}

void OnnxReader::add_known(const Node& node, const Row& row, const OnnxAttributes& attributes) {
  if (node.output_size() < 1 || node.input_size() < row.inputs) {
    file_.damaged(fmt::format("node {} ({}) has {} inputs and {} outputs; expected more",
                              node_name(node), row.op, node.input_size(), node.output_size()));
  }
  for (const auto& attribute : node.attribute()) {
    if (std::ranges::find(row.attributes, attribute.name()) == row.attributes.end()) {
      return refuse(node, "with the attribute " + shown_name(attribute.name()));
    }
  }
  try {
    if (row.check != nullptr) (this->*row.check)(attributes);
    // A node behind one that is missing cannot be checked further.
    for (const std::string& input : node.input()) {
      if (input.empty() || values_.contains(input) || constants_.find(input) != nullptr) continue;
      const auto writer = writers_.find(input);
      if (writer != writers_.end() && writer->second->output(0) != input) {
        return refuse(node, "of the second output of " + shown_name(writer->second->op_type()));
      }
      if (writer != writers_.end()) {
        has_unchecked_ = true;
        return;
      }
      file_.damaged(fmt::format("node {} ({}) reads the value {}, which no node writes",
                                node_name(node), row.op, shown_name(input)));
    }
    (this->*row.add)(node, attributes);
    const auto result = values_.find(node.output(0));
    if (result == values_.end()) return;  // the first part of a Split, which no node reads
    std::int64_t elements = 1;
    for (const std::int64_t side : map_of(result->second)) {
      if (__builtin_mul_overflow(elements, side, &elements) || elements > kMostOnnxElements) {
        refuse(node, fmt::format("with more than {} elements for one sample", kMostOnnxElements));
      }
    }
  } catch (const UsageError& error) {
    refuse(node, error.what());
  } catch (const ShapeError& error) {
    refuse(node, "(" + why(error) + ")");
  }
}

void OnnxReader::refuse(const Node& node, const std::string& what) {
  // PyTorch writes such a pool as dozens of nodes.
  if (is_of_adaptive_pool(node)) {
    return add_missing("an adaptive pool", " to a size that does not divide that of the map",
                       node_name(node));
  }
  if (is_of_attention(node)) {
    const std::string_view cure =
        constants_.origins().is_of_pytorch() ? ", exported with dynamo=False" : "";
    return add_missing("attention",
                       fmt::format(" in a form that is not known; expected a layer each for q, k "
                                   "and v, their views as [N, heads, rows, features], and "
                                   "scaled_dot_product_attention{}",
                                   cure),
                       node_name(node));
  }
  const std::string op = node.domain() == kJoinedDomain ? node.op_type() : operator_name(node);
  add_missing(shown_name(op), (what.empty() ? "" : " ") + what, node_name(node));
}

void OnnxReader::add_missing(const std::string& op, const std::string& what,
                             const std::string& node) {
  auto entry = std::ranges::find_if(
      missing_, [&](const Missing& each) { return each.op == op && each.what == what; });
  if (entry == missing_.end()) entry = missing_.insert(entry, {op, what, {}});
  entry->nodes.push_back(node);
}

void OnnxReader::find_attention(const std::vector<const Node*>& nodes) {
  // Between the two products of attention, and in front of them.
  static constexpr std::array kBetween = {"Add", "Cast",    "CastLike", "Div",  "Dropout",
                                          "Mul", "Softmax", "Reshape",  "Where"};
  static constexpr std::array kInFront = {
      "Abs",     "Add",        "Cast",      "CastLike",  "Concat", "Div",   "Equal",
      "Expand",  "Gather",     "Gemm",      "Identity",  "MatMul", "Mod",   "Mul",
      "Pow",     "Reciprocal", "Reshape",   "Shape",     "Slice",  "Split", "Sqrt",
      "Squeeze", "Sub",        "Transpose", "Unsqueeze", "Where"};
  const auto writer = [&](const std::string& value) -> const Node* {
    const auto found = constants_.find(value) == nullptr ? writers_.find(value) : writers_.end();
    return found == writers_.end() ? nullptr : found->second;
  };
  const auto is_one_of = [](const Node& node, const auto& ops) {
    return std::ranges::find(ops, operator_name(node)) != std::end(ops);
  };
  const auto of_first = [&](const Node& node) {
    return node.input_size() > 0 ? writer(node.input(0)) : nullptr;
  };
  std::vector<const Node*> open;
  for (const Node* node : nodes) {
    if (operator_name(*node) != "MatMul") continue;
    const Node* at = of_first(*node);
    bool has_softmax = false;
    while (at != nullptr && is_one_of(*at, kBetween)) {
      has_softmax = has_softmax || at->op_type() == "Softmax";
      at = of_first(*at);
    }
    if (has_softmax && at != nullptr && operator_name(*at) == "MatMul") open.push_back(node);
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!attention_.insert(node).second) continue;
    std::vector<const Node*> before;
    for (const std::string& input : node->input()) {
      if (const Node* const each = writer(input)) before.push_back(each);
    }
    // The sum of two values is that of a block around the attention.
    if (node->op_type() == "Add" && before.size() > 1) continue;
    for (const Node* each : before) {
      if (is_one_of(*each, kInFront) || each->op_type() == "Softmax") open.push_back(each);
    }
  }
}

bool OnnxReader::is_of_attention(const Node& node) const {
  // Of the others a weight or a number may be the cause.
  constexpr std::array kOthers = {"Add", "Div", "Gemm", "MatMul", "Mul", "Softmax", "Sub"};
  return attention_.contains(&node) &&
         std::ranges::find(kOthers, operator_name(node)) == kOthers.end();
}

void OnnxReader::throw_missing() const {
  std::vector<std::string> all;
  for (const Missing& each : missing_) {
    if (all.size() == kListedKinds) {
      all.push_back(fmt::format("and {} more kinds", missing_.size() - kListedKinds));
      break;
    }
    all.push_back(fmt::format("{} in node{} {}{}", each.op, each.nodes.size() == 1 ? "" : "s",
                              listed_names(each.nodes), each.what));
  }
  throw UsageError(
      fmt::format("{}: no counterpart here: {}; `syncopate convert --help` lists what is taken{}",
                  file_.path().string(), fmt::join(all, "; "),
                  has_unchecked_ ? ", and nodes behind these were not checked" : ""));
}

std::string OnnxReader::name_of(const Node& node, const std::string& weight) {
  const std::string name = layer_name(node.name(), weight, node.op_type());
  std::string unique = name;
  for (int number = 2; !names_.insert(unique).second; ++number) {
    unique = fmt::format("{}_{}", name, number);
  }
  return unique;
}

OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::istream& bytes) {
  OnnxFile file(path, bytes);
  join_activations(file);
  join_repeats(file);
  join_parts(file);
  return OnnxReader(file, layer_name(path.stem().string(), "", "network")).read();
}

OnnxNetwork read_onnx_network(const std::filesystem::path& path) {
  constexpr std::uintmax_t kMostFileBytes = (std::uintmax_t{1} << 31) - 1;  // of a message
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    const bool is_there = std::filesystem::exists(path, error);
    throw UsageError(path.string() +
                     (is_there ? ": this is no regular file" : ": there is no such file") +
                     "; expected an ONNX file");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size == 0) throw FileError(path.string() + ": the file is empty");
  if (size > kMostFileBytes) {
    throw FileError(fmt::format(
        "{}: {} bytes; expected less than 2 GiB; export with the weights in external data",
        path.string(), size));
  }
  std::ifstream bytes(path, std::ios::binary);
  if (!bytes) throw FileError(describe_errno("open", path.string(), errno));
  return read_onnx_network(path, bytes);
}

}  // namespace syncopate
