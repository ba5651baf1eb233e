// The operators of ONNX that have weights, and dropout.
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "deploy/onnx/onnx_operators.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::int64_t kMostLayerChannels = 1 << 24;

// Brings the elements of rows from the order H, W, C into the order C, H, W.
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

void check_conv(const OnnxAttributes& attributes) {
  refuse_dilation(attributes);
  one_size(attributes, "strides", 1);
}

// Keeps the weights of a convolution of `x` and sets its output. id: of the layer in the graph.
void set_kernel(OnnxReading& net, const NodeProto& node, const std::string& name,
                const OnnxValue& x, NodeId id, OnnxLayerWeights::Bias bias) {
  net.weights.set(name + ".weight", net.constants.floats(*net.graph.constant(node, 1)));
  if (!bias.values.empty()) net.weights.set(name + ".bias", std::move(bias.values));
  OnnxValue without_pad = x;
  without_pad.pad = {};
  net.set_like(node, without_pad, id);
  if (bias.add != nullptr) net.set_like(*bias.add, without_pad, id);
}

void add_conv(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue x = net.forms.as_map(net.pending_value(node, 0));
  const std::int64_t in = net.forms.map_of(x)[2];
  const auto [name, shape] = net.weights.kernel(node, 4);
  Conv2dOp op{.kernel_h = to_int(shape[2], 1, kLargestOnnxWindow, "a kernel of"),
              .kernel_w = to_int(shape[3], 1, kLargestOnnxWindow, "a kernel of"),
              .stride = one_size(attributes, "strides", 1),
              .groups = to_int(attributes.integer("group", 1), 1, kMostLayerChannels, "groups")};
  const Shape found = net.forms.shape_of(x);
  op.pad = onnx_padding(attributes, {found[2], found[3]}, std::span(shape).subspan(2), op.stride);
  op.pad = {op.pad.top + x.pad.top, op.pad.left + x.pad.left, op.pad.bottom + x.pad.bottom,
            op.pad.right + x.pad.right};
  OnnxLayerWeights::Bias bias = net.weights.bias(node, 2, shape[0], name);
  op.bias = !bias.values.empty();
  require_shape(node, {shape[0], in / op.groups, shape[2], shape[3]}, shape);
  const NodeId id =
      net.build.conv2d(x.node, name, to_int(shape[0], 1, kMostLayerChannels, "channels"), op);
  set_kernel(net, node, name, x, id, std::move(bias));
}

void check_conv_transpose(const OnnxAttributes& attributes) {
  check_conv(attributes);
  if (attributes.integer("group", 1) != 1) throw UsageError("with groups");
}

void add_conv_transpose(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue x = net.forms.as_map(net.value(node, 0));
  const std::int64_t in = net.forms.map_of(x)[2];
  const auto [name, shape] = net.weights.kernel(node, 4);
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
        size.size() < 2 ? net.forms.map_of(x)[i] * op.stride : size[size.size() - 2 + i];
    if (wanted < 1 || wanted > kMostLayerChannels) throw UsageError("with this output_shape");
    const std::int64_t all =
        op.stride * (net.forms.map_of(x)[i] - 1) + extra[i] + shape[i + 2] - wanted;
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
  OnnxLayerWeights::Bias bias = net.weights.bias(node, 2, shape[1], name);
  op.bias = !bias.values.empty();
  const NodeId id = net.build.conv_transpose2d(
      x.node, name, to_int(shape[1], 1, kMostLayerChannels, "channels"), op);
  set_kernel(net, node, name, x, id, std::move(bias));
}

void check_batch_norm(const OnnxAttributes& attributes) {
  if (attributes.integer("spatial", 1) != 1) throw UsageError("with spatial 0");
}

void add_batch_norm(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue x = net.forms.as_map(net.value(node, 0));
  const std::int64_t channels = net.forms.map_of(x)[2];
  auto [name, weight, bias] = net.weights.norm(node, channels);
  net.weights.set(name + ".weight", std::move(weight));
  net.weights.set(name + ".bias", std::move(bias));
  net.weights.set(name + ".running_mean", net.weights.list(node, 3, channels));
  net.weights.set(name + ".running_var", net.weights.list(node, 4, channels));
  const BatchNormOp op{.epsilon = attributes.number("epsilon", 1e-5F),
                       .momentum = complement(attributes.number("momentum", 0.9F))};
  net.set_like(node, x, net.build.batch_norm(x.node, name, op));
}

void add_layer_norm(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const Shape shape = net.forms.shape_of(net.value(node, 0));
  const std::int64_t axis = axis_of(attributes.integer("axis", -1), shape.size());
  if (axis + 1 != static_cast<std::int64_t>(shape.size())) {
    throw UsageError(fmt::format("over the axes from {} of {}; expected the channels, last", axis,
                                 net.forms.shown_shape(net.value(node, 0))));
  }
  const OnnxValue x = net.forms.in_order(net.value(node, 0));
  auto [name, weight, bias] = net.weights.norm(node, shape.back());
  if (!x.channels_last.empty()) {
    weight = channels_first(weight, x.channels_last);
    bias = channels_first(bias, x.channels_last);
  }
  net.weights.set(name + ".weight", std::move(weight));
  net.weights.set(name + ".bias", std::move(bias));
  const LayerNormOp op{.epsilon = attributes.number("epsilon", 1e-5F)};
  net.set_like(node, x, net.build.layer_norm(x.node, name, op));
}

void check_gemm(const OnnxAttributes& attributes) {
  if (attributes.integer("transA", 0) != 0) throw UsageError("with transA");
  for (const char* const factor : {"alpha", "beta"}) {
    const float value = attributes.number(factor, 1.0F);
    if (value != 1.0F) throw UsageError(fmt::format("with {} {}", factor, value));
  }
}

void add_product_of_values(OnnxReading& net, const NodeProto& node) {
  const OnnxValue a = net.forms.in_order(net.value(node, 0));
  const OnnxValue b = net.forms.in_order(net.value(node, 1));
  if (a.form != b.form || a.form == OnnxForm::kVector) {
    throw UsageError(
        fmt::format("of {} and {}; expected [N, B, M, K] and [N, B, K, L], or without B",
                    net.forms.shown_shape(a), net.forms.shown_shape(b)));
  }
  net.set_like(node, a, net.build.matmul(a.node, b.node));
}

// is_transposed: the weight is [out, in], not [in, out]. On the rows of a map the layer is a
// convolution of 1x1.
void add_dense(OnnxReading& net, const NodeProto& node, bool is_transposed) {
  const OnnxValue x = net.forms.in_order(net.value(node, 0));
  const bool is_map = x.form != OnnxForm::kVector;
  const auto [name, shape] = net.weights.kernel(node, 2);
  const std::int64_t out = shape[is_transposed ? 0 : 1];
  const std::int64_t in = net.forms.map_of(x).back();
  require_shape(node, is_transposed ? Shape{out, in} : Shape{in, out}, shape);
  OnnxLayerWeights::Bias bias = net.weights.bias(node, 2, out, name);
  // tf2onnx leaves out a bias of zeros, which Keras trains.
  if (bias.values.empty() && !is_map && net.graph.file().producer() != "pytorch") {
    bias.values = net.weights.new_bias(name, out);
  }
  const bool has_bias = !bias.values.empty();
  const int features = to_int(out, 1, kMostLayerChannels, "features");
  const NodeId id =
      is_map ? net.build.conv2d(x.node, name, features,
                                {.kernel_h = 1, .kernel_w = 1, .bias = has_bias})
             : net.build.dense(x.node, name, features, Init::kGlorotUniform, {.bias = has_bias});
  std::vector<float> weight = net.constants.floats(*net.graph.constant(node, 1));
  if (!is_transposed) {
    weight = exchanged_axes(weight, static_cast<std::size_t>(in), static_cast<std::size_t>(out));
  }
  if (!x.channels_last.empty()) weight = channels_first(weight, x.channels_last);
  net.weights.set(name + ".weight", std::move(weight));
  if (has_bias) net.weights.set(name + ".bias", std::move(bias.values));
  net.set(node, {.node = id, .form = x.form});
  if (bias.add != nullptr) net.set(*bias.add, {.node = id, .form = x.form});
}

void add_gemm(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  add_dense(net, node, attributes.integer("transB", 0) != 0);
}

void add_matmul(OnnxReading& net, const NodeProto& node, const OnnxAttributes& /*attributes*/) {
  if (net.is_value(node, 0) && net.is_value(node, 1)) return add_product_of_values(net, node);
  add_dense(net, node, false);
}

// In evaluation mode, which is the default, dropout is the identity.
void add_dropout(OnnxReading& net, const NodeProto& node, const OnnxAttributes& /*attributes*/) {
  const OnnxValue& x = net.value(node, 0);
  const auto rate = has_input(node, 1) ? net.constants.number(node.input(1)) : 0.5;
  const auto is_on = has_input(node, 2) ? net.constants.number(node.input(2)) : 0.0;
  if (!rate || !is_on) throw UsageError("whose rate is computed from the input");
  if (*is_on == 0.0 && *rate > 0.0) {
    net.notes.push_back(fmt::format("the dropout of {} in node {} is switched off and was left out",
                                    static_cast<float>(*rate), shown_name(node.name())));
  }
  if (*is_on == 0.0 || *rate == 0.0) return net.set(node, OnnxValue(x));
  const DropoutOp op{.rate = static_cast<float>(*rate)};
  net.set_like(node, x, net.build.dropout(x.node, net.weights.name_of(node), op));
}

}  // namespace

std::span<const OnnxRow> layer_rows() {
  static constexpr OnnxRow kRows[] = {
      {"Conv", 2, "auto_pad dilations group kernel_shape pads strides", add_conv, check_conv},
      {"ConvTranspose", 2,
       "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
       add_conv_transpose, check_conv_transpose},
      {"BatchNormalization", 5, "epsilon momentum spatial training_mode", add_batch_norm,
       check_batch_norm},
      {"LayerNormalization", 2, "axis epsilon stash_type", add_layer_norm},
      {"Gemm", 2, "alpha beta transA transB", add_gemm, check_gemm},
      {"MatMul", 2, "", add_matmul},
      {"Dropout", 1, "seed", add_dropout}};
  return kRows;
}

}  // namespace syncopate
