// The operators of ONNX that have weights, and dropout.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "deploy/onnx/onnx_reader.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::int64_t kMostLayerChannels = 1 << 24;
constexpr std::int64_t kLargestOnnxWindow = 1 << 7;

int to_int(std::int64_t value, std::int64_t least, std::int64_t most, std::string_view what) {
  if (value < least || value > most) {
    throw UsageError(fmt::format("with {} {}; expected {} to {}", what, value, least, most));
  }
  return static_cast<int>(value);
}

// Returns a matrix of `columns` rows from one of `rows` rows.
std::vector<float> exchanged_axes(const std::vector<float>& values, std::size_t rows,
                                  std::size_t columns) {
  std::vector<float> other(values.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      other[column * rows + row] = values[row * columns + column];
    }
  }
  return other;
}

// Brings rows whose elements have the order H, W, C into the order C, H, W.
std::vector<float> channels_first(const std::vector<float>& values, const Shape& map) {
  const auto pixels = static_cast<std::size_t>(map[0] * map[1]);
  const auto channels = static_cast<std::size_t>(map[2]);
  std::vector<float> other(values.size());
  for (std::size_t row = 0; row < values.size(); row += pixels * channels) {
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::size_t c = 0; c < channels; ++c) {
        other[row + c * pixels + pixel] = values[row + pixel * channels + c];
      }
    }
  }
  return other;
}

// Returns 1 - momentum as the float that its author wrote: 0.1 for 0.9.
float complement(float momentum) {
  const double written = std::strtod(fmt::format("{}", momentum).c_str(), nullptr);
  return static_cast<float>(1.0 - written);
}

}  // namespace

int one_size(const OnnxAttributes& attributes, std::string_view name, int otherwise) {
  const std::vector<std::int64_t> sizes = attributes.integers(name);
  if (sizes.empty()) return otherwise;
  if (sizes.size() != 2) throw UsageError(fmt::format("of {} dimensions", sizes.size()));
  if (sizes[0] != sizes[1]) {
    throw UsageError(fmt::format("with {} {}x{}", name, sizes[0], sizes[1]));
  }
  return to_int(sizes[0], 1, kLargestOnnxWindow, name);
}

void refuse_dilation(const OnnxAttributes& attributes) {
  for (const std::int64_t dilation : attributes.integers("dilations")) {
    if (dilation != 1) throw UsageError(fmt::format("with dilations of {}", dilation));
  }
}

Padding onnx_padding(const OnnxAttributes& attributes, const Shape& map,
                     std::span<const std::int64_t> kernel, std::int64_t stride) {
  const std::string kind = attributes.text("auto_pad", "NOTSET");
  std::array<std::int64_t, 4> sides{};  // top, left, bottom, right
  if (kind == "NOTSET") {
    const std::vector<std::int64_t> pads = attributes.integers("pads");
    if (!pads.empty() && pads.size() != 4) throw UsageError("without four pads");
    std::ranges::copy(pads, sides.begin());
  } else if (kind == "SAME_UPPER" || kind == "SAME_LOWER") {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t windows = (map[i] - 1) / stride + 1;
      const std::int64_t all =
          std::max<std::int64_t>((windows - 1) * stride + kernel[i] - map[i], 0);
      sides[i] = kind == "SAME_UPPER" ? all / 2 : all - all / 2;
      sides[i + 2] = all - sides[i];
    }
  } else if (kind != "VALID") {
    throw UsageError("with auto_pad " + shown_name(kind));
  }
  const auto side = [](std::int64_t value) { return to_int(value, 0, kLargestOnnxWindow, "pads"); };
  return {side(sides[0]), side(sides[1]), side(sides[2]), side(sides[3])};
}

std::string OnnxReader::kernel_weight(const Node& node, std::size_t rank, Shape& shape) {
  const OnnxConstant* weight = constant(node, 1);
  if (weight == nullptr) throw UsageError("whose weight is computed from the input");
  if (!weight->is_float) throw UsageError("whose weight is not of floats");
  shape = weight->shape;
  if (shape.size() != rank) throw UsageError(fmt::format("with a weight of {}", to_string(shape)));
  if (std::ranges::find(shape, 0) != shape.end()) throw UsageError("with an empty weight");
  for (const std::int64_t side : shape) to_int(side, 1, std::numeric_limits<int>::max(), "a side");
  std::string layer = name_of(node, parameter_name(node, 1));
  take(node, 1, layer);
  return layer;
}

std::string OnnxReader::parameter_name(const Node& node, int index) const {
  const OnnxConstant* tensor = constant(node, index);
  if (tensor == nullptr || tensor->source.empty()) return "";
  // A part of a stored tensor is a parameter of its own.
  if (tensor->stored == nullptr) return node.input(index);
  return constants_.origins().parameter(node, tensor->source);
}

void OnnxReader::require_parameter(const Node& node, int index) const {
  const OnnxConstant& tensor = *constant(node, index);
  const bool is_of_pytorch = constants_.origins().is_of_pytorch();
  const bool is_norm = node.op_type().ends_with("Normalization");
  const std::string name = shown_name(tensor.source.empty() ? node.input(index) : tensor.source);
  switch (constants_.origin_of_weight(node, index)) {
    case OnnxOrigin::kParameter:
    case OnnxOrigin::kUnclear:
      return;
    case OnnxOrigin::kFixed:
      if (tensor.source.empty() && !is_of_pytorch)
        return;  // Constant nodes may be parameters there
      if (is_norm) refuse_untrained_norm(index);
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

void OnnxReader::require_fixed(const Node& node, int index) {
  const OnnxOrigin origin = constants_.origin(node, index);
  if (origin == OnnxOrigin::kFixed) return;
  const std::string& tensor = constant(node, index)->source;
  // A bound is rarely trained, and programs that simplify files store those of ReLU6.
  const bool is_kept = node.op_type() == "Clip"
                           ? !constants_.origins().is_named_as_parameter(node, tensor)
                           : origin == OnnxOrigin::kUnclear;
  if (is_kept) {
    const bool is_divisor = tensor.find("_recip") != std::string::npos;
    notes_.push_back(
        fmt::format("{} of node {} stays as it is; if {} was trained, the network trains otherwise",
                    shown_name(tensor), node_name(node), is_divisor ? "the divisor" : "it"));
    return;
  }
  throw UsageError(
      fmt::format("with {}, which may be a trained number, and those have no counterpart here; "
                  "export a fixed one as a number of Python, such as 0.5",
                  shown_name(tensor)));
}

void OnnxReader::take(const Node& node, int index, const std::string& layer) {
  require_parameter(node, index);
  const OnnxConstant& tensor = *constant(node, index);
  const bool is_whole = tensor.stored != nullptr && !tensor.source.empty();
  const std::string name = is_whole                 ? parameter_name(node, index)
                           : !tensor.source.empty() ? tensor.source
                                                    : tensor.constant_node;
  if (name.empty()) return;
  const auto is_new_in = [&](const std::vector<std::string>& layers) {
    return std::ranges::find(layers, layer) == layers.end();
  };
  const bool is_unclear = constants_.origin_of_weight(node, index) == OnnxOrigin::kUnclear;
  if (is_unclear && is_new_in(unclear_layers_)) unclear_layers_.push_back(layer);
  std::vector<WeightUser>& users = weight_users_[name];
  const auto shares = [&](const WeightUser& user) {
    return user.layer != layer && user.first < tensor.end && tensor.first < user.end;
  };
  const auto other = std::ranges::find_if(users, shares);
  const bool is_shared = other != users.end();
  const std::string other_layer = is_shared ? other->layer : "";
  users.push_back({layer, tensor.first, tensor.end});
  if (!is_shared) return;
  const bool is_norm = node.op_type().ends_with("Normalization");
  const bool is_kernel = index == 1 && !is_norm && node.op_type() != "Add";
  if (!is_kernel) {
    if (is_new_in(copied_lists_)) copied_lists_.push_back(layer);
    return;
  }
  throw UsageError(
      fmt::format("with the tensor {} of {}, too; layers that share a weight have no counterpart "
                  "here, and those of equal values, which exporters may store once, stay apart in "
                  "an export of model.train() with optimize=False",
                  shown_name(name), other_layer));
}

void OnnxReader::require_shape(const Node& node, const Shape& expected, const Shape& found) const {
  if (expected == found) return;
  throw UsageError(fmt::format("with {} {}; expected {}", shown_name(node.input(1)),
                               to_string(found), to_string(expected)));
}

std::vector<float> OnnxReader::list_of(const Node& node, int index, std::int64_t size) const {
  const OnnxConstant* list = constant(node, index);
  if (list == nullptr) throw UsageError(fmt::format("whose input {} is not constant", index));
  if (!list->is_float) throw UsageError(fmt::format("whose input {} is not of floats", index));
  const auto is_side = [&](std::int64_t side) { return side == 1 || side == size; };
  if (num_elements(list->shape) != size || !std::ranges::all_of(list->shape, is_side)) {
    throw UsageError(fmt::format("with {} {}; expected [{}]", shown_name(node.input(index)),
                                 to_string(list->shape), size));
  }
  return constants_.floats(*list);
}

// A layer without a bias whose only reader adds a constant for each channel has that bias.
std::optional<OnnxReader::LaterBias> OnnxReader::later_bias(const Node& node,
                                                            std::int64_t channels) const {
  const Node* reader = only_reader(node);
  if (reader == nullptr || operator_name(*reader) != "Add" || reader->input_size() != 2) return {};
  const int index = reader->input(0) == node.output(0) ? 1 : 0;
  const OnnxConstant* bias = constant(*reader, index);
  if (bias == nullptr || !bias->is_float || num_elements(bias->shape) != channels) return {};
  const bool is_fixed = constants_.origin_of_weight(*reader, index) == OnnxOrigin::kFixed;
  if (is_fixed && (!bias->source.empty() || constants_.origins().is_of_pytorch())) return {};
  // [K] and [1, K] of a vector, [K, 1, 1] and [1, K, 1, 1] of a map.
  const bool is_map = node.op_type() == "Conv" || node.op_type() == "ConvTranspose";
  const Shape expected = is_map ? Shape{channels, 1, 1} : Shape{channels};
  Shape found = bias->shape;
  if (found.size() == expected.size() + 1 && found.front() == 1) found.erase(found.begin());
  if (found != expected) return {};
  return LaterBias{reader, index};
}

std::vector<float> OnnxReader::bias_of(const Node& node, int index, std::int64_t channels,
                                       const std::string& layer) {
  if (has_input(node, index)) {
    std::vector<float> bias = list_of(node, index, channels);
    // PyTorch computes zeros in place of a bias that a layer does not have.
    const bool is_computed = constant(node, index)->source.empty();
    const auto is_zero = [](float value) { return value == 0.0F; };
    if (is_computed && std::ranges::all_of(bias, is_zero)) return {};
    take(node, index, layer);
    return bias;
  }
  const auto later = later_bias(node, channels);
  if (!later) {
    const bool is_of_zeros = constants_.origins().lacks_zero_bias(node);
    return std::vector<float>(is_of_zeros ? static_cast<std::size_t>(channels) : 0);
  }
  joined_.insert(later->add);
  std::vector<float> bias = list_of(*later->add, later->input, channels);
  take(*later->add, later->input, layer);
  return bias;
}

void OnnxReader::check_conv(const OnnxAttributes& attributes) const {
  refuse_dilation(attributes);
  one_size(attributes, "strides", 1);
}

void OnnxReader::add_conv(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue x = as_map(pending_value(node, 0));
  const std::int64_t in = map_of(x)[2];
  Shape shape;
  const std::string name = kernel_weight(node, 4, shape);
  Conv2dOp op{.kernel_h = to_int(shape[2], 1, kLargestOnnxWindow, "a kernel of"),
              .kernel_w = to_int(shape[3], 1, kLargestOnnxWindow, "a kernel of"),
              .stride = one_size(attributes, "strides", 1),
              .groups = to_int(attributes.integer("group", 1), 1, kMostLayerChannels, "groups")};
  const Shape found = shape_of(x);
  op.pad = onnx_padding(attributes, {found[2], found[3]}, std::span(shape).subspan(2), op.stride);
  op.pad = {op.pad.top + x.pad.top, op.pad.left + x.pad.left, op.pad.bottom + x.pad.bottom,
            op.pad.right + x.pad.right};
  std::vector<float> bias = bias_of(node, 2, shape[0], name);
  op.bias = !bias.empty();
  require_shape(node, {shape[0], in / op.groups, shape[2], shape[3]}, shape);
  const NodeId id =
      build_.conv2d(x.node, name, to_int(shape[0], 1, kMostLayerChannels, "channels"), op);
  set_kernel(node, name, x, id, std::move(bias), shape[0]);
}

void OnnxReader::set_kernel(const Node& node, const std::string& name, const OnnxValue& x,
                            NodeId id, std::vector<float> bias, std::int64_t channels) {
  weights_[name + ".weight"] = constants_.floats(*constant(node, 1));
  if (!bias.empty()) weights_[name + ".bias"] = std::move(bias);
  OnnxValue without_pad = x;
  without_pad.pad = {};
  set_like(node, without_pad, id);
  if (const auto later = later_bias(node, channels); later && joined_.contains(later->add)) {
    set_like(*later->add, without_pad, id);
  }
}

void OnnxReader::check_conv_transpose(const OnnxAttributes& attributes) const {
  check_conv(attributes);
  if (attributes.integer("group", 1) != 1) throw UsageError("with groups");
}

void OnnxReader::add_conv_transpose(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue x = as_map(value(node, 0));
  const std::int64_t in = map_of(x)[2];
  Shape shape;
  const std::string name = kernel_weight(node, 4, shape);
  ConvTranspose2dOp op{.kernel_h = to_int(shape[2], 1, kLargestOnnxWindow, "a kernel of"),
                       .kernel_w = to_int(shape[3], 1, kLargestOnnxWindow, "a kernel of"),
                       .stride = one_size(attributes, "strides", 1)};
  require_shape(node, {in, shape[1], shape[2], shape[3]}, shape);
  std::vector<std::int64_t> extra = attributes.integers("output_padding");
  const std::vector<std::int64_t> size = attributes.integers("output_shape");
  const std::string kind = attributes.text("auto_pad", "NOTSET");
  const bool is_same = kind == "SAME_UPPER" || kind == "SAME_LOWER";
  std::vector<std::int64_t> pads = attributes.integers("pads");
  extra.resize(2);
  pads.resize(4);
  for (const std::int64_t rows : extra) to_int(rows, 0, kLargestOnnxWindow, "output_padding");
  for (std::size_t i = 0; i < 2; ++i) {
    // Source: ConvTranspose of the ONNX operators, the equations for pads of an output_shape.
    if (!is_same && size.size() < 2) continue;
    const std::int64_t wanted =
        size.size() < 2 ? map_of(x)[i] * op.stride : size[size.size() - 2 + i];
    if (wanted < 1 || wanted > kMostLayerChannels) throw UsageError("with this output_shape");
    const std::int64_t all = op.stride * (map_of(x)[i] - 1) + extra[i] + shape[i + 2] - wanted;
    pads[i] = kind == "SAME_UPPER" ? all / 2 : all - all / 2;
    pads[i + 2] = all - pads[i];
  }
  const auto side = [](std::int64_t pad) { return to_int(pad, 0, kLargestOnnxWindow, "pads"); };
  // output_padding is less padding at the bottom and the right.
  for (std::size_t i = 0; i < 2; ++i) {
    if (extra[i] <= pads[i + 2]) continue;
    throw UsageError(fmt::format("with output_padding {} and pads {} behind; expected at most {}",
                                 extra[i], pads[i + 2], pads[i + 2]));
  }
  op.pad = {side(pads[0]), side(pads[1]), side(pads[2] - extra[0]), side(pads[3] - extra[1])};
  std::vector<float> bias = bias_of(node, 2, shape[1], name);
  op.bias = !bias.empty();
  const NodeId id = build_.conv_transpose2d(
      x.node, name, to_int(shape[1], 1, kMostLayerChannels, "channels"), op);
  set_kernel(node, name, x, id, std::move(bias), shape[1]);
}

void OnnxReader::refuse_untrained_norm(int index) {
  throw UsageError(
      fmt::format("without a trained {} (affine=False or bias=False; scale=False or center=False "
                  "of Keras); a norm here trains both, so export one that has both",
                  index == 1 ? "weight" : "bias"));
}

void OnnxReader::take_norm(const Node& node, int index, const std::string& layer,
                           const std::vector<float>& values) {
  take(node, index, layer);
  const OnnxOrigins& origins = constants_.origins();
  const std::string& tensor = constant(node, index)->source;
  const auto is_tensor_of = [&](int other) {
    const OnnxConstant* found = constant(node, other);
    return found != nullptr && found->source == tensor;
  };
  // tf2onnx stores equal tensors once, also a constant of ones and a variance of ones.
  const bool is_merged =
      origins.is_of_tf2onnx() && !tensor.empty() && (is_tensor_of(3) || is_tensor_of(4));
  // Programs other than PyTorch may store a parameter as a Constant node.
  if (!tensor.empty() && !is_merged && !origins.may_be_filled(tensor)) return;
  const float filling = index == 1 ? 1.0F : 0.0F;
  const bool is_filled = std::ranges::all_of(values, [&](float each) { return each == filling; });
  if (is_filled && origins.is_of_tf2onnx() && !is_merged) refuse_untrained_norm(index);
  const bool is_doubtful = is_filled || tensor.empty() || origins.is_of_tf2onnx();
  if (is_doubtful && std::ranges::find(doubtful_norms_, layer) == doubtful_norms_.end()) {
    doubtful_norms_.push_back(layer);
  }
}

std::pair<std::vector<float>, std::vector<float>> OnnxReader::norm_weights(const Node& node,
                                                                           const std::string& name,
                                                                           std::int64_t size) {
  std::vector<float> weight = list_of(node, 1, size);
  take_norm(node, 1, name, weight);
  if (has_input(node, 2)) {
    std::vector<float> bias = list_of(node, 2, size);
    take_norm(node, 2, name, bias);
    return {std::move(weight), std::move(bias)};
  }
  if (!constants_.origins().lacks_zero_bias(node)) {
    if (constants_.origins().is_of_pytorch()) {
      throw UsageError(
          "without a bias (bias=False); a norm here trains one, so export one that has it");
    }
    layers_with_new_bias_.push_back(name);
  }
  return {std::move(weight), std::vector<float>(static_cast<std::size_t>(size))};
}

void OnnxReader::check_batch_norm(const OnnxAttributes& attributes) const {
  if (attributes.integer("spatial", 1) != 1) throw UsageError("with spatial 0");
}

void OnnxReader::add_batch_norm(const Node& node, const OnnxAttributes& attributes) {
  const OnnxValue x = as_map(value(node, 0));
  const std::int64_t channels = map_of(x)[2];
  const std::string name = name_of(node, parameter_name(node, 1));
  auto [weight, bias] = norm_weights(node, name, channels);
  weights_[name + ".weight"] = std::move(weight);
  weights_[name + ".bias"] = std::move(bias);
  weights_[name + ".running_mean"] = list_of(node, 3, channels);
  weights_[name + ".running_var"] = list_of(node, 4, channels);
  const BatchNormOp op{.epsilon = attributes.number("epsilon", 1e-5F),
                       .momentum = complement(attributes.number("momentum", 0.9F))};
  set_like(node, x, build_.batch_norm(x.node, name, op));
}

void OnnxReader::add_layer_norm(const Node& node, const OnnxAttributes& attributes) {
  const Shape shape = shape_of(value(node, 0));
  const std::int64_t axis = axis_of(attributes.integer("axis", -1), shape.size());
  if (axis + 1 != static_cast<std::int64_t>(shape.size())) {
    throw UsageError(fmt::format("over the axes from {} of {}; expected the channels, last", axis,
                                 shown_shape(value(node, 0))));
  }
  const OnnxValue x = in_order(value(node, 0));
  const std::string name = name_of(node, parameter_name(node, 1));
  auto [weight, bias] = norm_weights(node, name, shape.back());
  if (!x.channels_last.empty()) {
    weight = channels_first(weight, x.channels_last);
    bias = channels_first(bias, x.channels_last);
  }
  weights_[name + ".weight"] = std::move(weight);
  weights_[name + ".bias"] = std::move(bias);
  const LayerNormOp op{.epsilon = attributes.number("epsilon", 1e-5F)};
  set_like(node, x, build_.layer_norm(x.node, name, op));
}

void OnnxReader::check_gemm(const OnnxAttributes& attributes) const {
  if (attributes.integer("transA", 0) != 0) throw UsageError("with transA");
  for (const char* const factor : {"alpha", "beta"}) {
    const float value = attributes.number(factor, 1.0F);
    if (value != 1.0F) throw UsageError(fmt::format("with {} {}", factor, value));
  }
}

void OnnxReader::add_gemm(const Node& node, const OnnxAttributes& attributes) {
  add_dense(node, attributes.integer("transB", 0) != 0);
}

void OnnxReader::add_matmul(const Node& node, const OnnxAttributes& /*attributes*/) {
  if (is_value(node, 0) && is_value(node, 1)) return add_product_of_values(node);
  add_dense(node, false);
}

void OnnxReader::add_product_of_values(const Node& node) {
  const OnnxValue a = in_order(value(node, 0));
  const OnnxValue b = in_order(value(node, 1));
  if (a.form != b.form || a.form == OnnxForm::kVector) {
    throw UsageError(
        fmt::format("of {} and {}; expected [N, B, M, K] and [N, B, K, L], or without B",
                    shown_shape(a), shown_shape(b)));
  }
  set_like(node, a, build_.matmul(a.node, b.node));
}

// is_transposed: the weight is [out, in], not [in, out]. On the rows of a map the layer is a
// convolution of 1x1.
void OnnxReader::add_dense(const Node& node, bool is_transposed) {
  const OnnxValue x = in_order(value(node, 0));
  const bool is_map = x.form != OnnxForm::kVector;
  Shape shape;
  const std::string name = kernel_weight(node, 2, shape);
  const std::int64_t out = shape[is_transposed ? 0 : 1];
  const std::int64_t in = map_of(x).back();
  require_shape(node, is_transposed ? Shape{out, in} : Shape{in, out}, shape);
  std::vector<float> bias = bias_of(node, 2, out, name);
  // tf2onnx leaves out a bias of zeros, which Keras trains.
  if (bias.empty() && !is_map && file_.producer() != "pytorch") {
    bias.resize(static_cast<std::size_t>(out));
    layers_with_new_bias_.push_back(name);
  }
  const bool has_bias = !bias.empty();
  const int features = to_int(out, 1, kMostLayerChannels, "features");
  const NodeId id =
      is_map
          ? build_.conv2d(x.node, name, features, {.kernel_h = 1, .kernel_w = 1, .bias = has_bias})
          : build_.dense(x.node, name, features, Init::kGlorotUniform, {.bias = has_bias});
  std::vector<float> weight = constants_.floats(*constant(node, 1));
  if (!is_transposed) {
    weight = exchanged_axes(weight, static_cast<std::size_t>(in), static_cast<std::size_t>(out));
  }
  if (!x.channels_last.empty()) weight = channels_first(weight, x.channels_last);
  weights_[name + ".weight"] = std::move(weight);
  if (has_bias) weights_[name + ".bias"] = std::move(bias);
  set(node, {.node = id, .form = x.form});
  if (const auto later = later_bias(node, out); later && joined_.contains(later->add)) {
    set(*later->add, {.node = id, .form = x.form});
  }
}

// In evaluation mode, which is the default, dropout is the identity.
void OnnxReader::add_dropout(const Node& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = value(node, 0);
  const auto rate = has_input(node, 1) ? constants_.number(node.input(1)) : 0.5;
  const auto is_on = has_input(node, 2) ? constants_.number(node.input(2)) : 0.0;
  if (!rate || !is_on) throw UsageError("whose rate is computed from the input");
  if (*is_on == 0.0 && *rate > 0.0) {
    notes_.push_back(fmt::format("the dropout of {} in node {} is switched off and was left out",
                                 static_cast<float>(*rate), shown_name(node.name())));
  }
  if (*is_on == 0.0 || *rate == 0.0) return set(node, OnnxValue(x));
  const DropoutOp op{.rate = static_cast<float>(*rate)};
  set_like(node, x, build_.dropout(x.node, name_of(node), op));
}

}  // namespace syncopate
