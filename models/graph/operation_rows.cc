// The rows of the operations.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "models/base/errors.h"
#include "models/graph/operation_row.h"

namespace syncopate {
namespace {

constexpr std::array kDTypes = {DType::kU8, DType::kU16, DType::kF32};

constexpr std::int64_t kLargestMapSide = std::int64_t{1} << 30;  // of a map inside the network
constexpr std::string_view kHasParameters = "a node with parameters needs one";

using Fields = std::vector<Field>;

template <typename Op>
OperationRow row(OperationRow rest, Fields (*fields)(Op&, NodeDraft&),
                 NodeId (*add)(GraphBuilder&, NodeDraft&, Op&), Op defaults = {}) {
  rest.defaults = std::move(defaults);
  rest.fields = [fields](NodeDraft& node) {
    return fields == nullptr ? Fields{} : fields(std::get<Op>(node.operation), node);
  };
  if (add != nullptr) {
    rest.add = [add](GraphBuilder& build, NodeDraft& node) {
      return add(build, node, std::get<Op>(node.operation));
    };
  }
  return rest;
}

// Adds a node by a function of GraphBuilder, which takes the inputs and then the name, the channels
// and the operation as far as it needs them.
template <auto kAdd, typename Op>
NodeId add_node(GraphBuilder& build, NodeDraft& node, Op& op) {
  using Add = decltype(kAdd);
  const NodeId x = node.inputs[0];
  if constexpr (std::is_invocable_v<Add, GraphBuilder&, NodeId>) {
    return (build.*kAdd)(x);
  } else if constexpr (std::is_invocable_v<Add, GraphBuilder&, NodeId, NodeId>) {
    return (build.*kAdd)(x, node.inputs[1]);
  } else if constexpr (std::is_invocable_v<Add, GraphBuilder&, NodeId, Op>) {
    return (build.*kAdd)(x, op);
  } else if constexpr (std::is_invocable_v<Add, GraphBuilder&, NodeId, std::string_view, Op>) {
    return (build.*kAdd)(x, node.name, op);
  } else {
    return (build.*kAdd)(x, node.name, node.channels, op);
  }
}

const Shape& input_shape(const Graph& graph, const Node& node) {
  return graph.nodes[static_cast<std::size_t>(node.inputs.front())].shape;
}
std::int64_t weight_elements(const Graph& graph, const Node& node) {
  return num_elements(graph.parameters[static_cast<std::size_t>(node.parameters.front())].shape);
}

// Op: Conv2dOp or ConvTranspose2dOp.
template <typename Op>
Fields convolution_fields(Op& op, NodeDraft& node) {
  return {{"channels", ChannelsField{&node.channels, &node.classes_of}, true},
          {"kernel", KernelField{&op.kernel_h, &op.kernel_w}},
          {"stride", WholeField{&op.stride}},
          {"pad", PaddingField{&op.pad}},
          {"bias", FlagField{&op.bias}}};
}
NumberField below_one(float& value) {
  return {.value = &value, .least = 0.0F, .most = 1.0F, .excludes_most = true};
}
NumberField epsilon_field(float& value) {
  return {.value = &value, .least = 0.0F, .most = 1.0F, .excludes_least = true};
}
NumberField any_number(float& value) {
  constexpr float kMost = std::numeric_limits<float>::max();
  return {.value = &value, .least = -kMost, .most = kMost};
}
NumberField clip_bound(float& value) {
  NumberField field = any_number(value);
  field.why_required = "'low' or 'high' is missing; expected both bounds";
  return field;
}
// Pool: MaxPoolOp or AveragePoolOp.
template <typename Pool>
Fields pool_fields(Pool& op, NodeDraft& /*node*/) {
  return {{"window", WholeField{&op.window}},
          {"stride", WholeField{&op.stride}},
          {"pad", WholeField{&op.pad, 0}}};
}

// The row of a function that joins no other operation. kind: of a function without numbers.
OperationRow activation_row(Activation kind, OperationRow rest,
                            Fields (*fields)(ActivationOp&, NodeDraft&) = nullptr,
                            NodeId (*add)(GraphBuilder&, NodeDraft&, ActivationOp&) = nullptr) {
  rest.noun = "activation";
  rest.bytes = reading_inputs;
  rest.moved = {0, 5};  // x and y; x, dy and dx
  if (add == nullptr) {
    add = [](GraphBuilder& build, NodeDraft& node, ActivationOp& op) {
      return build.activation(node.inputs[0], op.kind);
    };
  }
  return row<ActivationOp>(std::move(rest), fields, add, {.kind = kind});
}
OperationRow function_row(Activation kind, std::string_view name, std::string_view remark = {}) {
  return activation_row(
      kind, {.name = name, .remark = remark, .shares_line = kind != Activation::kHardSwish});
}

OperationRow loss_row(LossKind kind, std::string_view name, std::string_view help) {
  const auto fields = [](LossOp& op, NodeDraft& /*node*/) {
    return Fields{
        {"label_smoothing", below_one(op.label_smoothing), false, op.label_smoothing != 0.0F}};
  };
  return row<LossOp>({.name = name, .noun = "loss", .bytes = bytes_of_loss, .help = help}, fields,
                     nullptr, {.kind = kind});
}

std::vector<OperationRow> make_rows() {
  return {
      row<InputOp>(
          {.name = "input",
           .inputs = 0,
           .why_named = kHasParameters,
           .bytes = bytes_of_input,
           .help = "the first node: samples of --data, each a map [H, W, C] or a vector [F].\n"
                   "shape, such as [28, 28, 1]: samples must have this shape (default: any)"},
          [](InputOp& op, NodeDraft& node) {
            return Fields{{"shape", ShapeField{&node.shape, kLargestSide}, true},
                          {"dtype", ChoiceField<DType>{&op.dtype, "dtype", kDTypes}, true},
                          {"mean", NumbersField{&op.mean}, true},
                          {"stddev", NumbersField{&op.stddev, true}, true}};
          },
          [](GraphBuilder& build, NodeDraft& node, InputOp& op) {
            op.is_plane = node.shape.size() == 2;
            if (op.is_plane) node.shape.push_back(1);
            return build.input(node.shape, op, node.name);
          }),
      row<Conv2dOp>(
          {.name = "conv2d",
           .noun = "convolution",
           .why_named = kHasParameters,
           .multiply_adds =
               [](const Graph& graph, const Node& node) {
                 return weight_elements(graph, node) * node.shape[0] * node.shape[1];
               },
           .bytes = weighted,
           .moved = {1, 1},
           .help = "channels, kernel 3 or [3, 3], stride 1, bias false, pad 0 or\n"
                   "[TOP, LEFT, BOTTOM, RIGHT], each pad smaller than the kernel; groups 1:\n"
                   "with as many groups as input channels the convolution is depthwise"},
          [](Conv2dOp& op, NodeDraft& node) {
            Fields fields = convolution_fields(op, node);
            // A convolution without groups has the same text as before there were groups.
            fields.push_back(
                {"groups", WholeField{&op.groups, 1, kMostChannels}, false, op.groups != 1});
            return fields;
          },
          add_node<&GraphBuilder::conv2d>),
      row<ConvTranspose2dOp>(
          {.name = "conv_transpose2d",
           .noun = "transposed convolution",
           .why_named = kHasParameters,
           .multiply_adds =
               [](const Graph& graph, const Node& node) {
                 const Shape& in = input_shape(graph, node);
                 return weight_elements(graph, node) * in[0] * in[1];
               },
           .bytes = weighted,
           .moved = {1, 1},
           .help = "channels, kernel 3, stride 2, bias false, pad 0 or [TOP, LEFT, BOTTOM,\n"
                   "RIGHT]. H becomes (H - 1) * stride + kernel - TOP - BOTTOM; for\n"
                   "PyTorch's output_padding, subtract it from BOTTOM and RIGHT"},
          convolution_fields<ConvTranspose2dOp>, add_node<&GraphBuilder::conv_transpose2d>),
      row<BatchNormOp>(
          {.name = "batch_norm",
           .noun = "batch norm",
           .why_named = kHasParameters,
           .bytes = bytes_of_batch_norm,
           .moved = {0, 8},  // forward reads x twice, writes y; backward x and dy twice, writes dx
           .help = "of a map; epsilon 1e-5, momentum 0.1 (the weight of the new batch)"},
          [](BatchNormOp& op, NodeDraft& /*node*/) {
            return Fields{{"epsilon", epsilon_field(op.epsilon)},
                          {"momentum", NumberField{&op.momentum, 0.0F, 1.0F}}};
          },
          add_node<&GraphBuilder::batch_norm>),
      row<LayerNormOp>(
          {.name = "layer_norm",
           .noun = "layer norm",
           .why_named = kHasParameters,
           .bytes = bytes_of_layer_norm,
           .moved = {0, 7},  // x and y; x and dy for the parameters; x, dy and dx
           .help = "over the channels of each pixel, or of a vector; epsilon 1e-5"},
          [](LayerNormOp& op, NodeDraft& /*node*/) {
            return Fields{{"epsilon", epsilon_field(op.epsilon)}};
          },
          add_node<&GraphBuilder::layer_norm>),
      row<DropoutOp>(
          {.name = "dropout",
           .why_named = "the elements that are dropped depend on it",
           .moved = {0, 4},
           .help = "rate 0.5: the probability that training sets an element to 0; the\n"
                   "node's name is part of the seed that selects these elements"},
          [](DropoutOp& op, NodeDraft& /*node*/) {
            return Fields{{"rate", below_one(op.rate)}};
          },
          add_node<&GraphBuilder::dropout>),
      row<ReluOp>({.name = "relu", .noun = "ReLU", .bytes = reading_output, .shares_line = true},
                  nullptr, add_node<&GraphBuilder::relu>),
      function_row(Activation::kRelu6, "relu6"),
      function_row(Activation::kSigmoid, "sigmoid"),
      function_row(Activation::kHardSigmoid, "hard-sigmoid"),
      function_row(Activation::kTanh, "tanh"),
      function_row(Activation::kGelu, "gelu", "(with erf)"),
      function_row(Activation::kSilu, "silu"),
      function_row(Activation::kHardSwish, "hard-swish"),
      activation_row(
          Activation::kLeakyRelu,
          {.name = "leaky_relu", .help = "slope 0.01: x above 0, and slope * x below"},
          [](ActivationOp& op, NodeDraft& /*node*/) {
            return Fields{{"slope", any_number(op.slope)}};
          },
          [](GraphBuilder& build, NodeDraft& node, ActivationOp& op) {
            return build.leaky_relu(node.inputs[0], op.slope);
          }),
      activation_row(
          Activation::kClip, {.name = "clip", .help = "low, high: min(max(x, low), high)"},
          [](ActivationOp& op, NodeDraft& /*node*/) {
            return Fields{{"low", clip_bound(op.low), true}, {"high", clip_bound(op.high), true}};
          },
          [](GraphBuilder& build, NodeDraft& node, ActivationOp& op) {
            return build.clip(node.inputs[0], op.low, op.high);
          }),
      activation_row(
          Activation::kLinear,
          {.name = "linear", .help = "factor 1, offset 0: factor * x + offset"},
          [](ActivationOp& op, NodeDraft& /*node*/) {
            return Fields{{"factor", any_number(op.factor)}, {"offset", any_number(op.offset)}};
          },
          [](GraphBuilder& build, NodeDraft& node, ActivationOp& op) {
            return build.linear(node.inputs[0], op.factor, op.offset);
          }),
      row<SoftmaxOp>({.name = "softmax",
                      .bytes = reading_output,
                      .moved = {0, 5},
                      .help = "over the channels of each pixel, or over a vector"},
                     nullptr, add_node<&GraphBuilder::softmax>),
      row<MaxPoolOp>({.name = "max_pool",
                      .noun = "max-pooling",
                      .bytes = bytes_of_max_pool,
                      .moved = {2, 2},
                      .shares_line = true},
                     pool_fields<MaxPoolOp>, add_node<&GraphBuilder::max_pool>),
      row<AveragePoolOp>(
          {.name = "average_pool",
           .noun = "average pooling",
           .moved = {2, 2},
           .help = "window 2, stride 2, pad 0 (a number less than half of the window);\n"
                   "average_pool counts the padding as zeros"},
          pool_fields<AveragePoolOp>, add_node<&GraphBuilder::average_pool>),
      row<GlobalAveragePoolOp>({.name = "global_average_pool",
                                .noun = "average pooling",
                                .moved = {2, 0},
                                .help = "the mean of each channel: [H, W, C] to [C]"},
                               nullptr, add_node<&GraphBuilder::global_average_pool>),
      row<FlattenOp>(
          {.name = "flatten",
           .help = "[H, W, C] to [F] in front of a dense layer. Files have the weights of this\n"
                   "layer in the order C, H, W, as in PyTorch. In front of a loss use reshape"},
          nullptr, add_node<&GraphBuilder::flatten>),
      row<DenseOp>(
          {.name = "dense",
           .why_named = kHasParameters,
           .multiply_adds = weight_elements,
           .bytes = weighted,
           .moved = {1, 1},
           .help = "features: a number, or \"classes\" in the output layer (for label maps,\n"
                   "the output layer is a convolution with \"classes\" channels);\n"
                   "init he-uniform | glorot-uniform (default), bias true"},
          [](DenseOp& op, NodeDraft& node) {
            return Fields{
                {"features", ChannelsField{&node.channels, &node.classes_of}, true},
                {"bias", FlagField{&op.bias}, false, !op.bias},
                {"init", ChoiceField<Init>{&node.init, "initial distribution", kAllValues<Init>}}};
          },
          [](GraphBuilder& build, NodeDraft& node, DenseOp& op) {
            if (node.classes_of != nullptr) {
              return add_classifier(build, node.inputs[0], node.name, *node.classes_of, node.init,
                                    op);
            }
            return build.dense(node.inputs[0], node.name, node.channels, node.init, op);
          }),
      row<AddOp>({.name = "add",
                  .noun = "addition",
                  .inputs = 2,
                  // forward reads the addend, backward its gradient
                  .moved = {0, 2},
                  .shares_line = true},
                 nullptr, add_node<&GraphBuilder::add>),
      row<MultiplyOp>(
          {.name = "multiply",
           .noun = "product",
           .inputs = 2,
           .bytes = reading_inputs,
           .moved = {0, 8},  // a, b and y; dy twice, a, b, and both gradients
           .help = "inputs: two nodes of equal shapes; multiply also takes a map and one\n"
                   "factor per channel, [C] or [1, 1, C]"},
          nullptr, add_node<&GraphBuilder::multiply>),
      row<MatmulOp>({.name = "matmul",
                     .noun = "matrix product",
                     .inputs = 2,
                     .multiply_adds =
                         [](const Graph& graph, const Node& node) {
                           return num_elements(node.shape) * input_shape(graph, node)[2];
                         },
                     .bytes = reading_inputs,
                     .moved = {2, 1},
                     .help = "inputs: [B, M, K] and [B, K, N], which give [B, M, N]"},
                    nullptr, add_node<&GraphBuilder::matmul>),
      row<ConcatOp>({.name = "concat",
                     .noun = "concatenation",
                     .inputs = kSeveralInputs,
                     .moved = {0, 4},
                     .help = "inputs: two or more maps of equal height and width, or vectors; the\n"
                             "result has the channels of all"},
                    nullptr,
                    [](GraphBuilder& build, NodeDraft& node, ConcatOp& /*op*/) {
                      return build.concat(node.inputs);
                    }),
      row<SliceOp>(
          {.name = "slice",
           .moved = {2, 2},
           .help = "first 0, count: channels first to first + count - 1 of a map or a vector"},
          [](SliceOp& op, NodeDraft& node) {
            return Fields{{"first", WholeField{&op.first, 0, kMostChannels}},
                          {"count", WholeField{&node.channels, 1, kMostChannels}, true}};
          },
          [](GraphBuilder& build, NodeDraft& node, SliceOp& op) {
            return build.slice(node.inputs[0], op.first, node.channels);
          }),
      row<UpsampleOp>(
          {.name = "upsample2d",
           .noun = "upsampling",
           .moved = {2, 2},
           .help = "scale 2, mode nearest | bilinear"},
          [](UpsampleOp& op, NodeDraft& /*node*/) {
            return Fields{
                {"scale", WholeField{&op.scale}},
                {"mode", ChoiceField<Interpolation>{&op.mode, "mode", kAllValues<Interpolation>}}};
          },
          add_node<&GraphBuilder::upsample2d>),
      row<ReshapeOp>(
          {.name = "reshape",
           .moved = {2, 2},
           .help = "shape, such as [1, 1, 32]; the elements keep the order H, W, C"},
          [](ReshapeOp& /*op*/, NodeDraft& node) {
            return Fields{{"shape", ShapeField{&node.shape, kLargestMapSide}, true}};
          },
          [](GraphBuilder& build, NodeDraft& node, ReshapeOp& /*op*/) {
            return build.reshape(node.inputs[0], node.shape);
          }),
      row<TransposeOp>(
          {.name = "transpose",
           .moved = {2, 2},
           .help = "order, such as [2, 0, 1]: the axes of the map that become H, W, C"},
          [](TransposeOp& op, NodeDraft& /*node*/) {
            return Fields{{"order", OrderField{&op.order}, true}};
          },
          [](GraphBuilder& build, NodeDraft& node, TransposeOp& op) {
            return build.transpose(node.inputs[0], op.order);
          }),
      row<ReduceMeanOp>(
          {.name = "reduce_mean",
           .noun = "mean",
           .moved = {2, 2},
           .help = "axes, such as [0, 1]: the mean over these axes; their size becomes 1"},
          [](ReduceMeanOp& op, NodeDraft& /*node*/) {
            return Fields{{"axes", AxesField{&op.axes}, true}};
          },
          [](GraphBuilder& build, NodeDraft& node, ReduceMeanOp& op) {
            std::vector<int> axes;
            for (int i = 0; i < 3; ++i) {
              if (op.axes[static_cast<std::size_t>(i)]) axes.push_back(i);
            }
            return build.reduce_mean(node.inputs[0], axes);
          }),
      row<ShortcutOp>(
          {.name = "shortcut",
           .moved = {0, 2},
           .help = "channels, stride 2: takes one pixel of each stride x stride pixels, and\n"
                   "appends channels of zeros until the map has `channels` channels"},
          [](ShortcutOp& op, NodeDraft& node) {
            return Fields{{"channels", ChannelsField{&node.channels, &node.classes_of}, true},
                          {"stride", WholeField{&op.stride}}};
          },
          [](GraphBuilder& build, NodeDraft& node, ShortcutOp& op) {
            return build.shortcut(node.inputs[0], op.stride, node.channels);
          }),
      loss_row(LossKind::kSoftmaxCrossEntropy, "softmax-cross-entropy",
               "the last node: the loss for classes; its input has the shape [classes], or\n"
               "[H, W, classes] for label maps"),
      loss_row(LossKind::kMeanSquaredError, "mean-squared-error",
               "the last node: the loss for targets that are numbers, as many as\n"
               "\"classes\""),
      loss_row(LossKind::kBinaryCrossEntropy, "binary-cross-entropy",
               "the last node: the loss for targets from 0 to 1, computed from logits;\n"
               "predict prints probabilities"),
      {.defaults = LossOp{.kind = LossKind::kLaterStages},
       .name = "later-stages",
       .noun = "loss",
       .bytes = bytes_of_loss}};
}

}  // namespace

const std::vector<OperationRow>& operation_rows() {
  static const std::vector<OperationRow> kRows = make_rows();
  return kRows;
}

const OperationRow& row_of(const Operation& operation) {
  const auto found = std::ranges::find_if(operation_rows(), [&](const OperationRow& row) {
    if (row.defaults.index() != operation.index()) return false;
    if (const auto* function = std::get_if<ActivationOp>(&operation)) {
      return std::get<ActivationOp>(row.defaults).kind == function->kind;
    }
    const auto* loss = std::get_if<LossOp>(&operation);
    return loss == nullptr || std::get<LossOp>(row.defaults).kind == loss->kind;
  });
  check(found != operation_rows().end(), "every operation has a row");
  return *found;
}

std::string_view name(const Operation& operation) { return row_of(operation).name; }
std::string_view name(LossKind kind) { return name(Operation(LossOp{.kind = kind})); }

std::int64_t multiply_adds_of(const Graph& graph, const Node& node) {
  const auto count = row_of(node.operation).multiply_adds;
  return count == nullptr ? 0 : count(graph, node);
}

std::string describe_operations() {
  std::string text;
  std::string names;
  for (const OperationRow& row : operation_rows()) {
    if (row.fields == nullptr) continue;
    names += fmt::format("{}{}{}{}", names.empty() ? "" : ", ", row.name,
                         row.remark.empty() ? "" : " ", row.remark);
    if (row.shares_line) continue;
    std::string help(row.help);
    const std::string indent(25, ' ');
    for (std::size_t at = help.find('\n'); at != std::string::npos; at = help.find('\n', at + 1)) {
      help.insert(at + 1, indent);
    }
    text += help.empty() ? fmt::format("  {}\n", names) : fmt::format("  {:<22} {}\n", names, help);
    names.clear();
  }
  return text;
}

}  // namespace syncopate
