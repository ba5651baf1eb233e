#include "deploy/onnx/onnx_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::int64_t kLargestOnnxSide = 1 << 16;
constexpr std::int64_t kMostOnnxChannels = 1 << 24;

// The order of the input's axes is not stored. Keras has the channels last (tf2onnx writes its
// files), and `export --onnx` has them first; otherwise the first operator that has an order
// decides.
OnnxForm form_of_input(const OnnxGraph& graph, const std::string& name, const Shape& shape,
                       std::vector<std::string>& notes) {
  if (shape.size() == 2) return OnnxForm::kVector;
  if (shape.size() == 3) return OnnxForm::kPlane;
  // Operators that read [N, C, H, W] in any ONNX file.
  constexpr std::array kOfMaps = {"Conv",    "ConvTranspose", "BatchNormalization",
                                  "MaxPool", "AveragePool",   "GlobalAveragePool"};
  const auto is_of_maps = [&](const NodeProto* node) {
    return std::ranges::find(kOfMaps, node->op_type()) != kOfMaps.end();
  };
  // The flag --inputs-as-nchw of tf2onnx removes the Transpose in front of the first layer.
  if (graph.file().producer() == "tf2onnx") {
    return std::ranges::any_of(graph.readers(name), is_of_maps) ? OnnxForm::kChannelsFirst
                                                                : OnnxForm::kChannelsLast;
  }
  if (graph.file().producer() == "syncopate") return OnnxForm::kChannelsFirst;
  std::vector<std::string> open = {name};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string value = open.back();
    open.pop_back();
    if (!seen.insert(value).second) continue;
    for (const NodeProto* node : graph.readers(value)) {
      if (is_of_maps(node)) return OnnxForm::kChannelsFirst;
      if (node->op_type() == "Transpose") {
        const auto order = OnnxAttributes(graph.file(), *node).integers("perm");
        if (order == std::vector<std::int64_t>{0, 3, 1, 2}) return OnnxForm::kChannelsLast;
        if (order == std::vector<std::int64_t>{0, 2, 3, 1}) return OnnxForm::kChannelsFirst;
        continue;
      }
      if (node->op_type() == "Reshape" || node->op_type() == "Flatten") continue;
      for (const std::string& output : node->output()) open.push_back(output);
    }
  }
  if (graph.file().producer() == "pytorch") return OnnxForm::kChannelsFirst;
  constexpr std::int64_t kMostColours = 4;
  const bool is_last = shape[3] <= kMostColours && shape[1] > kMostColours;
  notes.push_back(fmt::format(
      "no operator shows the order of the input's axes; {} is a guess, so compare a prediction "
      "with one of the program that wrote the file",
      is_last ? "N, H, W, C" : "N, C, H, W"));
  return is_last ? OnnxForm::kChannelsLast : OnnxForm::kChannelsFirst;
}

}  // namespace

OnnxInput read_onnx_input(const OnnxGraph& graph, std::vector<std::string>& notes) {
  const OnnxFile& file = graph.file();
  std::vector<const proto::onnx::ValueInfoProto*> inputs;
  for (const auto& each : file.graph().input()) {
    if (graph.constants().find(each.name()) == nullptr) inputs.push_back(&each);
  }
  const auto expect = [&](const std::string& found) {
    throw UsageError(
        fmt::format("{}: {}; expected one input of floats, [N, C, H, W], [N, H, W, C], [N, H, W] "
                    "or [N, F] with "
                    "fixed sizes but N",
                    file.path().string(), found));
  };
  if (inputs.size() != 1) {
    std::vector<std::string> names;
    for (const auto* input : inputs) names.push_back(shown_name(input->name()));
    // Keras's exporter makes the numbers of a Normalization layer inputs.
    const bool has_constants = std::ranges::any_of(names, [](const std::string& each) {
      return each.find("normalization") != std::string::npos;
    });
    expect(fmt::format("{} inputs{}{}{}", inputs.size(), names.empty() ? "" : ", ",
                       listed_names(names),
                       has_constants ? " (numbers of a Normalization layer of Keras: export the "
                                       "model without it, and normalise the data)"
                                     : ""));
  }
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
  OnnxInput read;
  read.shown = fmt::format("[{}]", fmt::join(sides, ", "));
  const bool is_float = OnnxFile::is_float_type(type.elem_type());
  const bool is_fixed = std::all_of(shape.begin() + (shape.empty() ? 0 : 1), shape.end(),
                                    [](std::int64_t side) { return side > 0; });
  if (shape.size() < 2 || shape.size() > 4 || !is_fixed || !is_float) {
    expect(fmt::format("input {} is {}{}", shown_name(name), read.shown,
                       is_float ? "" : fmt::format(" of type {}", type.elem_type())));
  }
  read.batch = shape[0];
  read.name = name;
  read.form = form_of_input(graph, name, shape, notes);
  const OnnxForm form = read.form;
  if (shape.size() == 4) {
    read.shown += form == OnnxForm::kChannelsLast ? " as N, H, W, C" : " as N, C, H, W";
  }
  Shape& sample = read.sample;
  sample.assign(shape.begin() + 1, shape.end());
  if (form == OnnxForm::kChannelsFirst) sample = {shape[2], shape[3], shape[1]};
  if (form == OnnxForm::kPlane) sample.push_back(1);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const std::int64_t most = i + 1 == sample.size() ? kMostOnnxChannels : kLargestOnnxSide;
    if (sample[i] > most) expect(fmt::format("input {} is {}", shown_name(name), read.shown));
  }
  return read;
}

}  // namespace syncopate
