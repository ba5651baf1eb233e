#include "deploy/onnx/onnx_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>

#include "deploy/onnx/layer_names.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::size_t kListedNodes = 6;
constexpr std::size_t kListedKinds = 40;
constexpr std::int64_t kLargestOnnxSide = 1 << 16;
constexpr std::int64_t kMostOnnxChannels = 1 << 24;
constexpr std::int64_t kMostOnnxElements = std::int64_t{1} << 36;

std::string node_name(const NodeProto& node) {
  if (!node.name().empty()) return shown_name(node.name());
  return node.output_size() > 0 ? shown_name(node.output(0)) : "without a name";
}

bool is_standard(const NodeProto& node) {
  return node.domain().empty() || node.domain() == "ai.onnx";
}

// Returns the names for a message, of which the first few are listed.
std::string listed(const std::vector<std::string>& names) {
  const std::size_t count = std::min(names.size(), kListedNodes);
  const std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + count, ", "));
  if (count == names.size()) return text;
  return fmt::format("{} and {} more", text, names.size() - count);
}

// Returns the message of GraphBuilder without the node's name in front.
std::string why(const ShapeError& error) {
  const std::string what = error.what();
  const std::size_t colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
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
  // What depends on stored tensors alone comes first: a layer may need the bias of a later Add.
  for (const Node* node : nodes) constants_.fold(*node, [](const auto&) { return std::nullopt; });
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

// The loss contains the last softmax, so the network ends in front of it.
void OnnxReader::drop_last_activation() {
  std::string at = output_;
  constexpr int kMostSteps = 4;
  for (int step = 0; step < kMostSteps; ++step) {
    const auto writer = writers_.find(at);
    if (writer == writers_.end() || writer->second->input_size() < 1) return;
    const Node& node = *writer->second;
    if (readers_[at].size() > (step == 0 ? 0U : 1U)) return;
    at = node.input(0);
    if (node.op_type() == "Identity" || node.op_type() == "Transpose") continue;
    if (!is_standard(node)) return;
    if (node.op_type() == "Softmax" || node.op_type() == "LogSoftmax") {
      dropped_softmax_ = &node;
      notes_.push_back(fmt::format("the {} at the end ({}) was dropped: the loss contains it",
                                   node.op_type(), node_name(node)));
    } else if (node.op_type() == "Sigmoid") {
      notes_.push_back(fmt::format(
          "the Sigmoid at the end ({}) was dropped, and the loss is binary-cross-entropy, which "
          "contains it",
          node_name(node)));
      loss_ = LossKind::kBinaryCrossEntropy;
    } else {
      return;
    }
    output_ = at;
    return;
  }
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

void OnnxReader::add_input() {
  std::vector<const proto::onnx::ValueInfoProto*> inputs;
  for (const auto& each : file_.graph().input()) {
    if (constants_.find(each.name()) == nullptr) inputs.push_back(&each);
  }
  const auto expect = [&](const std::string& found) {
    throw UsageError(
        fmt::format("{}: {}; expected one input of floats, [N, C, H, W], [N, H, W, C], [N, H, W] "
                    "or [N, F] with "
                    "fixed sizes but N",
                    file_.path().string(), found));
  };
  if (inputs.size() != 1) expect(fmt::format("{} inputs", inputs.size()));
  const auto& type = inputs[0]->type().tensor_type();
  const std::string& name = inputs[0]->name();
  std::vector<std::string> sides;
  Shape shape;
  for (const auto& side : type.shape().dim()) {
    shape.push_back(side.dim_value() > 0 ? side.dim_value() : -1);
    sides.push_back(sides.empty()              ? "N"
                    : shape.back() > 0         ? fmt::format("{}", shape.back())
                    : side.dim_param().empty() ? "?"
                                               : shown_name(side.dim_param()));
  }
  input_shape_ = fmt::format("[{}]", fmt::join(sides, ", "));
  constexpr std::array kFloats = {1, 10, 11, 16};
  const bool is_float = std::ranges::find(kFloats, type.elem_type()) != kFloats.end();
  const bool is_fixed = std::all_of(shape.begin() + (shape.empty() ? 0 : 1), shape.end(),
                                    [](std::int64_t side) { return side > 0; });
  if (shape.size() < 2 || shape.size() > 4 || !is_fixed || !is_float) {
    expect(fmt::format("input {} is {}{}", shown_name(name), input_shape_,
                       is_float ? "" : fmt::format(" of type {}", type.elem_type())));
  }
  batch_ = shape[0];
  const OnnxForm form = form_of_input(name, shape);
  Shape sample(shape.begin() + 1, shape.end());
  if (form == OnnxForm::kChannelsFirst) sample = {shape[2], shape[3], shape[1]};
  if (form == OnnxForm::kPlane) sample.push_back(1);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const std::int64_t most = i + 1 == sample.size() ? kMostOnnxChannels : kLargestOnnxSide;
    if (sample[i] > most) expect(fmt::format("input {} is {}", shown_name(name), input_shape_));
  }
  const auto channels = static_cast<std::size_t>(sample.back());
  InputOp op{.dtype = DType::kF32};
  const std::size_t means = sample.size() == 1 ? 1 : channels;
  op.mean.assign(means, 0.0F);
  op.stddev.assign(means, 1.0F);
  names_.insert("x");
  values_[name] = {.node = build_.input(std::move(sample), std::move(op)), .form = form};
}

// The order of the input's axes is not stored. The first operator that has one decides.
OnnxForm OnnxReader::form_of_input(const std::string& name, const Shape& shape) const {
  if (shape.size() == 2) return OnnxForm::kVector;
  if (shape.size() == 3) return OnnxForm::kPlane;
  constexpr std::array kOfMaps = {"Conv",    "ConvTranspose", "BatchNormalization",
                                  "MaxPool", "AveragePool",   "GlobalAveragePool",
                                  "Pad"};
  std::vector<std::string> open = {name};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string value = open.back();
    open.pop_back();
    const auto readers = readers_.find(value);
    if (!seen.insert(value).second || readers == readers_.end()) continue;
    for (const Node* node : readers->second) {
      if (std::ranges::find(kOfMaps, node->op_type()) != kOfMaps.end()) {
        return OnnxForm::kChannelsFirst;
      }
      if (node->op_type() == "Transpose") {
        const auto order = OnnxAttributes(file_, *node).integers("perm");
        return order == std::vector<std::int64_t>{0, 3, 1, 2} ? OnnxForm::kChannelsLast
                                                              : OnnxForm::kChannelsFirst;
      }
      if (node->op_type() == "Reshape" || node->op_type() == "Flatten") continue;
      for (const std::string& output : node->output()) open.push_back(output);
    }
  }
  constexpr std::int64_t kMostColours = 4;
  if (file_.producer() == "pytorch") return OnnxForm::kChannelsFirst;
  return shape[3] <= kMostColours && shape[1] > kMostColours ? OnnxForm::kChannelsLast
                                                             : OnnxForm::kChannelsFirst;
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
  const std::string op = is_standard(node) ? node.op_type() : node.domain() + "::" + node.op_type();
  const auto row = std::ranges::find(rows(), op, &Row::op);
  // PyTorch writes these operators for a dropout that overwrites its input.
  if (op == "RandomUniformLike") {
    return refuse(node, "of a dropout with inplace=True; export it with inplace=False");
  }
  if (row == rows().end()) return refuse(node, "");
  add_known(node, *row, OnnxAttributes(file_, node));
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
      if (writer != writers_.end()) return;
      file_.damaged(fmt::format("node {} ({}) reads the value {}, which no node writes",
                                node_name(node), row.op, shown_name(input)));
    }
    (this->*row.add)(node, attributes);
    std::int64_t elements = 1;
    for (const std::int64_t side : map_of(values_.at(node.output(0)))) {
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
  const std::string op = is_standard(node) ? node.op_type() : node.domain() + "::" + node.op_type();
  const std::string text = shown_name(op) + (what.empty() ? "" : " ") + what;
  auto entry = std::ranges::find(missing_, text, [](const auto& each) { return each.first; });
  if (entry == missing_.end()) entry = missing_.insert(entry, {text, {}});
  entry->second.push_back(node_name(node));
}

void OnnxReader::throw_missing() const {
  std::vector<std::string> all;
  for (const auto& [what, nodes] : missing_) {
    if (all.size() == kListedKinds) {
      all.push_back(fmt::format("and {} more kinds", missing_.size() - kListedKinds));
      break;
    }
    all.push_back(
        fmt::format("{} in node{} {}", what, nodes.size() == 1 ? "" : "s", listed(nodes)));
  }
  throw UsageError(
      fmt::format("{}: no counterpart here: {}; `syncopate convert --help` lists what is taken",
                  file_.path().string(), fmt::join(all, "; ")));
}

// An exporter that folds a batch norm into the convolution leaves its traces in names and metadata.
void OnnxReader::note_folded_batch_norms() {
  const auto names_one = [](std::string text) {
    text = lower_case(std::move(text));
    return text.find("batchnorm") != text.npos || text.find("batch_norm") != text.npos;
  };
  std::string first;
  int count = 0;
  for (const Node& node : file_.graph().node()) {
    if (node.op_type() == "BatchNormalization") return;
    if (node.op_type() != "Conv" && node.op_type() != "ConvTranspose") continue;
    bool is_folded = node.input_size() > 2 && node.input(1).starts_with("onnx::Conv_");
    for (const std::string& output : node.output()) is_folded = is_folded || names_one(output);
    for (const auto& entry : node.metadata_props()) {
      is_folded =
          is_folded || (entry.key() != "pkg.torch.onnx.stack_trace" && names_one(entry.value()));
    }
    if (is_folded && ++count == 1) first = node_name(node);
  }
  if (count == 0) return;
  notes_.push_back(fmt::format(
      "the exporter folded the batch norms into {} convolution{}, such as {}, so the network "
      "trains without them; PyTorch keeps them with training=torch.onnx.TrainingMode.TRAINING, "
      "do_constant_folding=False, optimize=False",
      count, count == 1 ? "" : "s", first));
}

void OnnxReader::check_dropped_softmax(const OnnxValue& last) const {
  if (dropped_softmax_ == nullptr) return;
  const bool is_last = last.form == OnnxForm::kChannelsLast || last.form == OnnxForm::kPixelLast ||
                       last.form == OnnxForm::kRows;
  const std::int64_t axis = OnnxAttributes(file_, *dropped_softmax_).integer("axis", -1);
  const auto rank = static_cast<std::int64_t>(shape_of(last).size());
  if (axis_of(axis, shape_of(last).size()) == (is_last ? rank - 1 : 1)) return;
  throw UsageError(
      fmt::format("{}: the Softmax at the end is over axis {} of {}; expected the classes",
                  file_.path().string(), axis, shown_shape(last)));
}

OnnxNetwork OnnxReader::finish() {
  const auto last = values_.find(output_);
  if (last == values_.end()) {
    file_.damaged(fmt::format("the output {} is not computed from the input", shown_name(output_)));
  }
  check_dropped_softmax(last->second);
  if (last->second.is_pending()) {
    throw UsageError(file_.path().string() +
                     ": the network ends with a Pad or repeated rows; end it with a layer");
  }
  if (!last->second.channels_last.empty()) {
    throw UsageError(file_.path().string() + ": the output is a flattened map; end the network " +
                     "with a dense layer, or with the map");
  }
  if (loss_ == LossKind::kBinaryCrossEntropy && map_of(last->second).size() != 1) {
    throw UsageError(file_.path().string() +
                     ": a Sigmoid at the end of a map; label maps are trained with a softmax, of "
                     "two channels or more");
  }
  OnnxNetwork network{.graph = {},
                      .weights = {},
                      .input = input_shape_,
                      .other_files = file_.other_files(),
                      .notes = {}};
  try {
    network.graph = build_.finish(last->second.node, {.kind = loss_});
  } catch (const ShapeError& error) {
    throw UsageError(file_.path().string() + ": " + error.what());
  }
  const auto take = [&](const std::string& name, const Shape& shape) {
    const auto found = weights_.find(name);
    check(found != weights_.end(), "every parameter has values");
    check(static_cast<std::int64_t>(found->second.size()) == num_elements(shape),
          "the values have the shape of the parameter");
    if (!std::ranges::all_of(found->second, [](float value) { return std::isfinite(value); })) {
      file_.damaged("the values of " + name + " are not finite; the network diverged");
    }
    network.weights.push_back({name, shape, std::move(found->second)});
  };
  for (const Parameter& each : network.graph.parameters) take(each.name, each.file_shape);
  for (const State& each : network.graph.state) take(each.name, each.shape);
  if (network.graph.parameters.empty()) {
    throw UsageError(file_.path().string() +
                     ": no layer has weights, so there is nothing to train");
  }
  if (!layers_with_new_bias_.empty()) {
    notes_.push_back("layers without a bias got one of zeros, which is trained: " +
                     listed(layers_with_new_bias_));
  }
  network.notes = std::move(notes_);
  return network;
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
    throw UsageError(path.string() + ": there is no such file; expected an ONNX file");
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
