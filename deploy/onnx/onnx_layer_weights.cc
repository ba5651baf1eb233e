#include "deploy/onnx/onnx_layer_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

[[noreturn]] void refuse_untrained_norm(int index) {
  throw UsageError(
      fmt::format("without a trained {} (affine=False or bias=False; scale=False or center=False "
                  "of Keras); a norm here trains both, so export one that has both",
                  index == 1 ? "weight" : "bias"));
}

bool is_norm(const NodeProto& node) { return node.op_type().ends_with("Normalization"); }

void insert_new(std::vector<std::string>& layers, const std::string& layer) {
  if (std::ranges::find(layers, layer) == layers.end()) layers.push_back(layer);
}

}  // namespace

int to_int(std::int64_t value, std::int64_t least, std::int64_t most, std::string_view what) {
  if (value < least || value > most) {
    throw UsageError(fmt::format("with {} {}; expected {} to {}", what, value, least, most));
  }
  return static_cast<int>(value);
}

void require_shape(const NodeProto& node, const Shape& expected, const Shape& found) {
  if (expected == found) return;
  throw UsageError(fmt::format("with {} {}; expected {}", shown_name(node.input(1)),
                               to_string(found), to_string(expected)));
}

std::string OnnxLayerWeights::unique_name(const Node& node, const std::string& weight) {
  const std::string name = layer_name(node.name(), weight, node.op_type());
  std::string unique = name;
  for (int number = 2; !names_.insert(unique).second; ++number) {
    unique = fmt::format("{}_{}", name, number);
  }
  return unique;
}

std::string OnnxLayerWeights::parameter_name(const Node& node, int index) const {
  const OnnxConstant* tensor = graph_.constant(node, index);
  if (tensor == nullptr || tensor->source.empty()) return "";
  // A part of a stored tensor is a parameter of its own.
  if (tensor->stored == nullptr) return node.input(index);
  return graph_.constants().origins().parameter(node, tensor->source);
}

OnnxLayerWeights::Kernel OnnxLayerWeights::kernel(const Node& node, std::size_t rank) {
  const OnnxConstant* weight = graph_.constant(node, 1);
  if (weight == nullptr) throw UsageError("whose weight is computed from the input");
  if (!weight->is_float) throw UsageError("whose weight is not of floats");
  const Shape& shape = weight->shape;
  if (shape.size() != rank) throw UsageError(fmt::format("with a weight of {}", to_string(shape)));
  if (std::ranges::find(shape, 0) != shape.end()) throw UsageError("with an empty weight");
  for (const std::int64_t side : shape) to_int(side, 1, std::numeric_limits<int>::max(), "a side");
  Kernel kernel{unique_name(node, parameter_name(node, 1)), shape};
  note_user(node, 1, kernel.layer);
  return kernel;
}

void OnnxLayerWeights::require_parameter(const Node& node, int index) const {
  const OnnxConstant& tensor = *graph_.constant(node, index);
  const bool is_of_pytorch = graph_.constants().origins().is_of_pytorch();
  const std::string name = shown_name(tensor.source.empty() ? node.input(index) : tensor.source);
  switch (graph_.constants().origin_of_weight(node, index)) {
    case OnnxOrigin::kParameter:
    case OnnxOrigin::kUnclear:
      return;
    case OnnxOrigin::kFixed:
      if (tensor.source.empty() && !is_of_pytorch)
        return;  // Constant nodes may be parameters there
      if (is_norm(node)) refuse_untrained_norm(index);
      throw UsageError(
          fmt::format("with {}, which is not trained in the program that wrote the file", name));
    case OnnxOrigin::kComputed:
      throw UsageError(fmt::format(
          "with {}, which the exporter computed (a trained weight times a mask or a number, a sum) "
          "and which would be trained otherwise here; an export with optimize=False and "
          "do_constant_folding=False names the trained tensors",
          name));
  }
}

void OnnxLayerWeights::note_user(const Node& node, int index, const std::string& layer) {
  require_parameter(node, index);
  const OnnxConstant& tensor = *graph_.constant(node, index);
  const bool is_whole = tensor.stored != nullptr && !tensor.source.empty();
  const std::string name = is_whole                 ? parameter_name(node, index)
                           : !tensor.source.empty() ? tensor.source
                                                    : tensor.constant_node;
  if (name.empty()) return;
  const bool is_unclear = graph_.constants().origin_of_weight(node, index) == OnnxOrigin::kUnclear;
  if (is_unclear) insert_new(unclear_layers_, layer);
  std::vector<WeightUser>& users = weight_users_[name];
  const auto shares = [&](const WeightUser& user) {
    return user.layer != layer && user.first < tensor.end && tensor.first < user.end;
  };
  const auto other = std::ranges::find_if(users, shares);
  const bool is_shared = other != users.end();
  const std::string other_layer = is_shared ? other->layer : "";
  users.push_back({layer, tensor.first, tensor.end});
  if (!is_shared) return;
  const bool is_kernel = index == 1 && !is_norm(node) && node.op_type() != "Add";
  if (!is_kernel) return insert_new(copied_lists_, layer);
  throw UsageError(
      fmt::format("with the tensor {} of {}, too; layers that share a weight have no counterpart "
                  "here, and those of equal values, which exporters may store once, stay apart in "
                  "an export of model.train() with optimize=False",
                  shown_name(name), other_layer));
}

std::vector<float> OnnxLayerWeights::list(const Node& node, int index, std::int64_t size) const {
  const OnnxConstant* list = graph_.constant(node, index);
  if (list == nullptr) throw UsageError(fmt::format("whose input {} is not constant", index));
  if (!list->is_float) throw UsageError(fmt::format("whose input {} is not of floats", index));
  const auto is_side = [&](std::int64_t side) { return side == 1 || side == size; };
  if (num_elements(list->shape) != size || !std::ranges::all_of(list->shape, is_side)) {
    throw UsageError(fmt::format("with {} {}; expected [{}]", shown_name(node.input(index)),
                                 to_string(list->shape), size));
  }
  return graph_.constants().floats(*list);
}

// A layer without a bias has the constant of its only reader, if that is an Add with one number for
// each channel.
std::optional<OnnxLayerWeights::LaterBias> OnnxLayerWeights::later_bias(
    const Node& node, std::int64_t channels) const {
  const Node* reader = graph_.only_reader(node);
  if (reader == nullptr || operator_name(*reader) != "Add" || reader->input_size() != 2) return {};
  const int index = reader->input(0) == node.output(0) ? 1 : 0;
  const OnnxConstant* bias = graph_.constant(*reader, index);
  if (bias == nullptr || !bias->is_float || num_elements(bias->shape) != channels) return {};
  const bool is_fixed = graph_.constants().origin_of_weight(*reader, index) == OnnxOrigin::kFixed;
  if (is_fixed && (!bias->source.empty() || graph_.constants().origins().is_of_pytorch()))
    return {};
  // [K] and [1, K] of a vector, [K, 1, 1] and [1, K, 1, 1] of a map.
  const bool is_map = node.op_type() == "Conv" || node.op_type() == "ConvTranspose";
  const Shape expected = is_map ? Shape{channels, 1, 1} : Shape{channels};
  Shape found = bias->shape;
  if (found.size() == expected.size() + 1 && found.front() == 1) found.erase(found.begin());
  if (found != expected) return {};
  return LaterBias{reader, index};
}

OnnxLayerWeights::Bias OnnxLayerWeights::bias(const Node& node, int index, std::int64_t channels,
                                              const std::string& layer) {
  if (has_input(node, index)) {
    std::vector<float> values = list(node, index, channels);
    // PyTorch computes zeros in place of a bias that a layer does not have.
    const bool is_computed = graph_.constant(node, index)->source.empty();
    const auto is_zero = [](float value) { return value == 0.0F; };
    if (is_computed && std::ranges::all_of(values, is_zero)) return {};
    note_user(node, index, layer);
    return {std::move(values)};
  }
  const auto later = later_bias(node, channels);
  if (!later) {
    const bool is_of_zeros = graph_.constants().origins().lacks_zero_bias(node);
    return {std::vector<float>(is_of_zeros ? static_cast<std::size_t>(channels) : 0)};
  }
  biases_.insert(later->add);
  std::vector<float> values = list(*later->add, later->input, channels);
  note_user(*later->add, later->input, layer);
  return {std::move(values), later->add};
}

std::vector<float> OnnxLayerWeights::new_bias(const std::string& layer, std::int64_t size) {
  layers_with_new_bias_.push_back(layer);
  return std::vector<float>(static_cast<std::size_t>(size));
}

std::vector<float> OnnxLayerWeights::norm_list(const Node& node, int index, std::int64_t size,
                                               const std::string& layer) {
  std::vector<float> values = list(node, index, size);
  note_user(node, index, layer);
  const OnnxOrigins& origins = graph_.constants().origins();
  const std::string& tensor = graph_.constant(node, index)->source;
  const auto is_tensor_of = [&](int other) {
    const OnnxConstant* found = graph_.constant(node, other);
    return found != nullptr && found->source == tensor;
  };
  // tf2onnx stores equal tensors once, also a constant of ones and a variance of ones.
  const bool is_merged =
      origins.is_of_tf2onnx() && !tensor.empty() && (is_tensor_of(3) || is_tensor_of(4));
  // Programs other than PyTorch may store a parameter as a Constant node.
  if (!tensor.empty() && !is_merged && !origins.may_be_filled(tensor)) return values;
  const float filling = index == 1 ? 1.0F : 0.0F;
  const bool is_filled = std::ranges::all_of(values, [&](float each) { return each == filling; });
  if (is_filled && origins.is_of_tf2onnx() && !is_merged) refuse_untrained_norm(index);
  if (is_filled || tensor.empty() || origins.is_of_tf2onnx()) insert_new(doubtful_norms_, layer);
  return values;
}

OnnxLayerWeights::Norm OnnxLayerWeights::norm(const Node& node, std::int64_t size) {
  Norm norm{unique_name(node, parameter_name(node, 1)), {}, {}};
  norm.weight = norm_list(node, 1, size, norm.layer);
  if (has_input(node, 2)) {
    norm.bias = norm_list(node, 2, size, norm.layer);
  } else if (graph_.constants().origins().lacks_zero_bias(node)) {
    norm.bias.resize(static_cast<std::size_t>(size));
  } else if (graph_.constants().origins().is_of_pytorch()) {
    throw UsageError(
        "without a bias (bias=False); a norm here trains one, so export one that has it");
  } else {
    norm.bias = new_bias(norm.layer, size);
  }
  return norm;
}

void OnnxLayerWeights::set(const std::string& name, std::vector<float> values) {
  weights_[name] = std::move(values);
}

std::vector<float> OnnxLayerWeights::take(const std::string& name, const Shape& shape) {
  const auto found = weights_.find(name);
  check(found != weights_.end(), "every parameter has values");
  check(static_cast<std::int64_t>(found->second.size()) == num_elements(shape),
        "the values have the shape of the parameter");
  if (!std::ranges::all_of(found->second, [](float value) { return std::isfinite(value); })) {
    graph_.file().damaged("the values of " + name +
                          " are not finite: its training diverged, or the export failed; "
                          "export sound weights");
  }
  return std::move(found->second);
}

std::vector<std::string> OnnxLayerWeights::notes() const {
  std::vector<std::string> notes;
  const auto add = [&](const char* what, const std::vector<std::string>& layers) {
    if (!layers.empty()) notes.push_back(what + listed_names(layers));
  };
  add("layers without a bias got one of zeros, which is trained: ", layers_with_new_bias_);
  add("biases or norms that the file stores once for several layers are trained apart: ",
      copied_lists_);
  add("norms whose weight or bias may be a fixed number in the program that wrote the file, and is "
      "trained here: ",
      doubtful_norms_);
  add("the exporter computed weights or biases of these layers, mostly by exchanging axes; a "
      "factor "
      "that it folded would not be trained as such, which optimize=False and "
      "do_constant_folding=False show: ",
      unclear_layers_);
  return notes;
}

}  // namespace syncopate
