// The output of a network in an ONNX file: its last activation, which the loss contains, and the
// weights and notes of the network that was read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "deploy/onnx/onnx_reader.h"
#include "models/base/errors.h"

namespace syncopate {

// The loss contains the last softmax or sigmoid, which becomes an Identity here. Only operators
// that change the shape may stand behind it.
void OnnxReader::drop_last_activation() {
  constexpr std::array kOfShapes = {"Identity", "Transpose", "Flatten", "Reshape", "Squeeze"};
  constexpr int kMostSteps = 8;
  std::string at = output_;
  for (int step = 0; step < kMostSteps; ++step) {
    const auto writer = writers_.find(at);
    if (writer == writers_.end() || writer->second->input_size() < 1) return;
    const Node& node = *writer->second;
    // PyTorch reads the shape for a Reshape.
    const auto readers = std::ranges::count_if(
        readers_[at], [](const Node* reader) { return reader->op_type() != "Shape"; });
    if (readers > (step == 0 ? 0 : 1) || !is_standard(node)) return;
    if (std::ranges::find(kOfShapes, node.op_type()) == kOfShapes.end()) {
      return drop_activation(node);
    }
    at = node.input(0);
  }
}

void OnnxReader::drop_activation(const Node& node) {
  if (node.op_type() == "Softmax" || node.op_type() == "LogSoftmax") {
    dropped_softmax_ = &node;
    dropped_axis_ = OnnxAttributes(file_, node).integer("axis", -1);
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
  for (Node& each : *file_.mutable_graph().mutable_node()) {
    if (&each != &node) continue;
    each.set_op_type("Identity");
    each.clear_attribute();
  }
}

void OnnxReader::note_folded_batch_norms() {
  std::vector<std::string> layers;
  for (const Node& node : file_.graph().node()) {
    if (has_folded_batch_norm(node)) layers.push_back(node_name(node));
  }
  if (layers.empty()) return;
  const std::string_view cure =
      file_.producer() == "pytorch"
          ? "PyTorch keeps them with training=torch.onnx.TrainingMode.TRAINING, "
            "do_constant_folding=False, optimize=False"
          : "to train with them, add nodes batch_norm to the network file (syncopate network "
            "--help)";
  notes_.push_back(fmt::format(
      "the exporter folded the batch norms into {} layer{}, such as {}, so the network trains "
      "without them; {}",
      layers.size(), layers.size() == 1 ? "" : "s", layers.front(), cure));
}

void OnnxReader::check_dropped_softmax(const OnnxValue& last) const {
  if (dropped_softmax_ == nullptr) return;
  const OnnxValue& x = values_.at(dropped_softmax_->input(0));
  const std::size_t rank = shape_of(x).size();
  if (channel_axis(x.form) != axis_of(dropped_axis_, rank)) {
    throw UsageError(
        fmt::format("{}: the Softmax at the end is over axis {} of {}; expected the classes",
                    file_.path().string(), dropped_axis_, shown_shape(x)));
  }
  const auto is_one_pixel = [&](const OnnxValue& value) {
    return num_elements(map_of(value)) == map_of(value).back();
  };
  if (x.node == last.node || (is_one_pixel(x) && is_one_pixel(last))) return;
  throw UsageError(fmt::format(
      "{}: the Softmax at the end is over axis {} of {}, which becomes {} behind it; expected the "
      "Softmax over the classes of that",
      file_.path().string(), dropped_axis_, shown_shape(x), shown_shape(last)));
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
      file_.damaged("the values of " + name +
                    " are not finite: its training diverged, or the export failed; "
                    "export sound weights");
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
                     listed_names(layers_with_new_bias_));
  }
  if (!copied_lists_.empty()) {
    notes_.push_back(
        "biases or norms that the file stores once for several layers are trained apart: " +
        listed_names(copied_lists_));
  }
  if (!doubtful_norms_.empty()) {
    notes_.push_back(
        "norms whose weight or bias may be a fixed number in the program that wrote the file, and "
        "is trained here: " +
        listed_names(doubtful_norms_));
  }
  if (!unclear_layers_.empty()) {
    notes_.push_back(
        "the exporter computed weights or biases of these layers, mostly by exchanging axes; a "
        "factor that it folded would not be trained as such, which optimize=False and "
        "do_constant_folding=False show: " +
        listed_names(unclear_layers_));
  }
  network.notes = std::move(notes_);
  return network;
}

}  // namespace syncopate
