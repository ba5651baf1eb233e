// Turns the nodes of an ONNX file into nodes of a graph, one after the other.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>

#include "deploy/onnx/onnx_input.h"
#include "deploy/onnx/onnx_layer_weights.h"
#include "deploy/onnx/onnx_missing.h"
#include "deploy/onnx/onnx_network.h"
#include "deploy/onnx/onnx_operators.h"
#include "deploy/onnx/replaced_nodes.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::int64_t kMostOnnxElements = std::int64_t{1} << 36;

// Returns the message of GraphBuilder without the node's name in front.
std::string why(const ShapeError& error) {
  const std::string what = error.what();
  const std::size_t colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

// One thread only.
class OnnxReader {
 public:
  using Node = NodeProto;

  // nodes: that the output depends on, sorted. notes: for the user, so far.
  OnnxReader(OnnxGraph& graph, std::vector<const Node*> nodes, std::string name,
             const OnnxInput& input, std::vector<std::string> notes)
      : graph_(graph),
        missing_(graph, nodes),
        notes_(std::move(notes)),
        build_(std::move(name)),
        forms_(graph, build_, input.batch),
        weights_(graph),
        net_{graph, graph.constants(), build_, forms_, weights_, notes_} {
    const std::size_t means =
        input.sample.size() == 1 ? 1 : static_cast<std::size_t>(input.sample.back());
    InputOp op{.dtype = DType::kF32, .is_plane = input.form == OnnxForm::kPlane};
    op.mean.assign(means, 0.0F);
    op.stddev.assign(means, 1.0F);
    net_.values[input.name] = {.node = build_.input(input.sample, std::move(op)),
                               .form = input.form};
    for (const Node* node : nodes) add(*node);
    missing_.throw_if_any();
  }

  OnnxNetwork finish(const DroppedActivation& dropped, LossKind loss, std::string input);

 private:
  void add(const Node& node);
  void add_known(const Node& node, const OnnxRow& row, const OnnxAttributes& attributes);
  // Whether a node computes on the shape of a value that is missing, because a node was refused.
  bool is_of_missing_shape(const Node& node) const;
  // Returns the stored tensors that a node computes a constant from and that may be trained.
  std::vector<std::string> trained_inputs(const Node& node) const;
  void note_folded_batch_norms();
  // Throws UsageError unless the softmax that was dropped is over the channels of its input, and
  // `last` has the same channels.
  void check_dropped_softmax(const DroppedActivation& dropped, const OnnxValue& last) const;

  OnnxGraph& graph_;
  OnnxMissing missing_;
  std::vector<std::string> notes_;
  GraphBuilder build_;
  OnnxForms forms_;
  OnnxLayerWeights weights_;
  OnnxReading net_;
  std::set<std::string> shapes_of_missing_;  // values that is_of_missing_shape() found
  std::set<std::string> random_values_;      // of random layers, which are refused
};

void OnnxReader::add(const Node& node) {
  if (weights_.is_bias(node)) return;
  if (node.output_size() > 0 && graph_.constants().find(node.output(0)) != nullptr) return;
  const auto known_shape = [&](const std::string& value) -> std::optional<Shape> {
    const auto found = net_.values.find(value);
    if (found == net_.values.end()) return std::nullopt;
    return forms_.shape_of(found->second);
  };
  if (graph_.constants().fold(node, known_shape)) return;
  if (is_of_missing_shape(node)) {
    shapes_of_missing_.insert(node.output().begin(), node.output().end());
    return;
  }
  if (const auto trained = trained_inputs(node); !trained.empty()) {
    return missing_.add(
        shown_name(operator_name(node)),
        fmt::format(" of {}, which may be trained; a weight computed from trained tensors (pruned, "
                    "scaled, normalised, a sum) is not trained as such here, so make it a "
                    "parameter before the export, such as by prune.remove()",
                    listed_names(trained)),
        node_name(node));
  }
  const std::string op = operator_name(node);
  const OnnxRow* row = find_onnx_row(op);
  if (op.starts_with("Random") || op == "Bernoulli" || op == "Multinomial") {
    random_values_.insert(node.output().begin(), node.output().end());
    return missing_.refuse(
        node,
        "of a random layer: export a dropout with inplace=False; stochastic depth, "
        "Dropout2d and augmentation have no counterpart, so set their rate to 0, or "
        "take them out");
  }
  if (row == nullptr && node.input_size() > 0 && random_values_.contains(node.input(0))) {
    random_values_.insert(node.output().begin(), node.output().end());
    missing_.note_unchecked();  // what a random layer does with its random numbers goes with it
    return;
  }
  if (row == nullptr) return missing_.refuse(node, "");
  add_known(node, *row, OnnxAttributes(graph_.file(), node));
}

std::vector<std::string> OnnxReader::trained_inputs(const Node& node) const {
  std::vector<std::string> trained;
  for (int i = 0; i < node.input_size(); ++i) {
    if (!has_input(node, i)) continue;
    if (graph_.constant(node, i) == nullptr) return {};
    if (graph_.constants().origin(node, i) == OnnxOrigin::kFixed) continue;
    trained.push_back(shown_name(graph_.constant(node, i)->source));
  }
  return trained;
}

bool OnnxReader::is_of_missing_shape(const Node& node) const {
  const auto is_shape = [&](const std::string& input) {
    return shapes_of_missing_.contains(input);
  };
  const auto is_missing = [&](const std::string& input) {
    return !net_.values.contains(input) && graph_.constants().find(input) == nullptr &&
           !is_shape(input) && graph_.writer(input) != nullptr;
  };
  if (operator_name(node) == "Shape") return std::ranges::any_of(node.input(), is_missing);
  return std::ranges::any_of(node.input(), is_shape) &&
         std::ranges::all_of(node.input(), [&](const std::string& input) {
           return input.empty() || is_shape(input) || graph_.constants().find(input) != nullptr;
         });
}

void OnnxReader::add_known(const Node& node, const OnnxRow& row, const OnnxAttributes& attributes) {
  if (node.output_size() < 1 || node.input_size() < row.inputs) {
    graph_.file().damaged(fmt::format("node {} ({}) has {} inputs and {} outputs; expected more",
                                      node_name(node), row.op, node.input_size(),
                                      node.output_size()));
  }
  for (const auto& attribute : node.attribute()) {
    if (!row.supports(attribute.name())) {
      return missing_.refuse(node, "with the attribute " + shown_name(attribute.name()));
    }
  }
  try {
    if (row.check != nullptr) row.check(attributes);
    // A node behind one that is missing cannot be checked further.
    for (const std::string& input : node.input()) {
      if (input.empty() || net_.values.contains(input) || graph_.constants().find(input) != nullptr)
        continue;
      const Node* writer = graph_.writer(input);
      if (writer != nullptr && writer->output(0) != input) {
        return missing_.refuse(node, "of the second output of " + shown_name(writer->op_type()));
      }
      if (writer != nullptr) {
        missing_.note_unchecked();
        return;
      }
      graph_.file().damaged(fmt::format("node {} ({}) reads the value {}, which no node writes",
                                        node_name(node), row.op, shown_name(input)));
    }
    row.add(net_, node, attributes);
    const auto result = net_.values.find(node.output(0));
    if (result == net_.values.end()) return;  // the first part of a Split, which no node reads
    std::int64_t elements = 1;
    for (const std::int64_t side : forms_.map_of(result->second)) {
      if (__builtin_mul_overflow(elements, side, &elements) || elements > kMostOnnxElements) {
        missing_.refuse(
            node, fmt::format("with more than {} elements for one sample", kMostOnnxElements));
      }
    }
  } catch (const UsageError& error) {
    missing_.refuse(node, error.what());
  } catch (const ShapeError& error) {
    missing_.refuse(node, "(" + why(error) + ")");
  }
}

void OnnxReader::note_folded_batch_norms() {
  std::vector<std::string> layers;
  for (const Node& node : graph_.file().graph().node()) {
    if (has_folded_batch_norm(node)) layers.push_back(node_name(node));
  }
  if (layers.empty()) return;
  const std::string_view cure =
      graph_.file().producer() == "pytorch"
          ? "PyTorch keeps them with training=torch.onnx.TrainingMode.TRAINING, "
            "do_constant_folding=False, optimize=False"
          : "to train with them, add nodes batch_norm to the network file (syncopate network "
            "--help)";
  notes_.push_back(fmt::format(
      "the exporter folded the batch norms into {} layer{}, such as {}, so the network trains "
      "without them; {}",
      layers.size(), layers.size() == 1 ? "" : "s", layers.front(), cure));
}

void OnnxReader::check_dropped_softmax(const DroppedActivation& dropped,
                                       const OnnxValue& last) const {
  if (dropped.softmax == nullptr) return;
  const OnnxValue& x = net_.values.at(dropped.softmax->input(0));
  const std::size_t rank = forms_.shape_of(x).size();
  if (channel_axis(x.form) != axis_of(dropped.axis, rank)) {
    throw UsageError(
        fmt::format("{}: the Softmax at the end is over axis {} of {}; expected the classes",
                    graph_.file().path().string(), dropped.axis, forms_.shown_shape(x)));
  }
  const auto is_one_pixel = [&](const OnnxValue& value) {
    return num_elements(forms_.map_of(value)) == forms_.map_of(value).back();
  };
  if (x.node == last.node || (is_one_pixel(x) && is_one_pixel(last))) return;
  throw UsageError(fmt::format(
      "{}: the Softmax at the end is over axis {} of {}, which becomes {} behind it; expected the "
      "Softmax over the classes of that",
      graph_.file().path().string(), dropped.axis, forms_.shown_shape(x),
      forms_.shown_shape(last)));
}

OnnxNetwork OnnxReader::finish(const DroppedActivation& dropped, LossKind loss, std::string input) {
  const std::string file = graph_.file().path().string();
  note_folded_batch_norms();
  const auto found = net_.values.find(graph_.output());
  if (found == net_.values.end()) {
    graph_.file().damaged(
        fmt::format("the output {} is not computed from the input", shown_name(graph_.output())));
  }
  const OnnxValue& last = found->second;
  check_dropped_softmax(dropped, last);
  if (last.is_pending()) {
    throw UsageError(file + ": the network ends with a Pad or repeated rows; end it with a layer");
  }
  if (loss == LossKind::kBinaryCrossEntropy && forms_.map_of(last).size() != 1) {
    throw UsageError(file +
                     ": a Sigmoid at the end of a map; label maps are trained with a softmax, of "
                     "two channels or more");
  }
  OnnxNetwork network{.graph = {},
                      .weights = {},
                      .input = std::move(input),
                      .other_files = graph_.file().other_files(),
                      .notes = {}};
  try {
    network.graph = build_.finish(last.node, {.kind = loss});
  } catch (const ShapeError& error) {
    throw UsageError(file + ": " + error.what());
  }
  const auto take = [&](const std::string& name, const Shape& shape) {
    network.weights.push_back({name, shape, weights_.take(name, shape)});
  };
  for (const Parameter& each : network.graph.parameters) take(each.name, each.file_shape);
  for (const State& each : network.graph.state) take(each.name, each.shape);
  if (network.graph.parameters.empty()) {
    throw UsageError(file + ": no layer has weights, so there is nothing to train");
  }
  network.notes = std::move(notes_);
  const std::vector<std::string> of_weights = weights_.notes();
  network.notes.insert(network.notes.end(), of_weights.begin(), of_weights.end());
  return network;
}

}  // namespace

OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::istream& bytes) {
  OnnxFile file(path, bytes);
  join_activations(file);
  join_repeats(file);
  join_parts(file);
  OnnxGraph graph(file);
  graph.require_one_output();
  LossKind loss = LossKind::kSoftmaxCrossEntropy;
  // `export --onnx` writes the loss, which no node shows.
  for (const LossKind kind : {LossKind::kBinaryCrossEntropy, LossKind::kMeanSquaredError}) {
    if (file.metadata("loss") == name(kind)) loss = kind;
  }
  std::vector<std::string> notes;
  const DroppedActivation dropped = drop_last_activation(file, graph, notes);
  if (dropped.is_sigmoid) loss = LossKind::kBinaryCrossEntropy;
  const std::vector<const NodeProto*> nodes = graph.sort();
  const OnnxInput input = read_onnx_input(graph, notes);
  return OnnxReader(graph, nodes, layer_name(path.stem().string(), "", "network"), input,
                    std::move(notes))
      .finish(dropped, loss, input.shown);
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
