#include "deploy/onnx/write_onnx_network.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <numbers>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "deploy/onnx/proto/onnx.pb.h"
#include "models/base/errors.h"
#include "models/base/replacing_file.h"

namespace syncopate {
namespace {

using proto::onnx::AttributeProto;
using proto::onnx::ModelProto;
using proto::onnx::NodeProto;
using proto::onnx::TensorProto;

// Opset 17 is the first with LayerNormalization; programs of 2022 and later read it.
constexpr std::int64_t kOpset = 17;
constexpr std::int64_t kIrVersion = 8;
// The numbers of the types in onnx.proto3.
constexpr std::int32_t kFloats = 1;
constexpr std::int32_t kIntegers = 7;

constexpr const char* kLogits = "logits";  // the output, whatever the layers are called

using Integers = std::vector<std::int64_t>;

AttributeProto& attribute(NodeProto& node, std::string_view name, std::int32_t type) {
  AttributeProto& added = *node.add_attribute();
  added.set_name(std::string(name));
  added.set_type(type);
  return added;
}

void set(NodeProto& node, std::string_view name, std::int64_t value) {
  constexpr std::int32_t kInt = 2;
  attribute(node, name, kInt).set_i(value);
}

void set(NodeProto& node, std::string_view name, float value) {
  constexpr std::int32_t kFloat = 1;
  attribute(node, name, kFloat).set_f(value);
}

void set(NodeProto& node, std::string_view name, const char* text) {
  constexpr std::int32_t kText = 3;
  attribute(node, name, kText).set_s(text);
}

void set(NodeProto& node, std::string_view name, const Integers& values) {
  constexpr std::int32_t kInts = 7;
  AttributeProto& list = attribute(node, name, kInts);
  for (const std::int64_t value : values) list.add_ints(value);
}

void set_pads(NodeProto& node, const Padding& pad) {
  set(node, "pads", Integers{pad.top, pad.left, pad.bottom, pad.right});
}

void set_window(NodeProto& node, int window, int stride, int pad) {
  set(node, "kernel_shape", Integers{window, window});
  set(node, "strides", Integers{stride, stride});
  set_pads(node, pad);
}

// One thread only.
class OnnxWriter {
 public:
  OnnxWriter(const Graph& graph, const ReadTensor& read) : graph_(graph), read_(read) {}

  ModelProto model() {
    model_.set_ir_version(kIrVersion);
    model_.set_producer_name("syncopate");
    model_.add_opset_import()->set_version(kOpset);
    onnx().set_name(graph_.name);
    add_weights();
    for (std::size_t id = 0; id + 1 < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      const bool is_last = static_cast<NodeId>(id) == graph_.nodes.back().inputs.front();
      const std::string label =
          node.name.empty() ? fmt::format("{}_{}", name(node.operation), id) : node.name;
      values_.push_back(is_last ? kLogits : new_name(label));
      std::visit([&](const auto& operation) { add(node, operation); }, node.operation);
    }
    add_value(*onnx().add_output(), values_[index(graph_.nodes.back().inputs.front())],
              graph_.logits_shape());
    return std::move(model_);
  }

 private:
  static std::size_t index(int id) { return static_cast<std::size_t>(id); }
  proto::onnx::GraphProto& onnx() { return *model_.mutable_graph(); }
  // The output of the node that is added now, and its input.
  const std::string& output() const { return values_.back(); }
  const std::string& input(const Node& node, std::size_t i = 0) const {
    return values_[index(node.inputs[i])];
  }
  const Shape& input_shape(const Node& node) const {
    return graph_.nodes[index(node.inputs.front())].shape;
  }

  std::string new_name(std::string wanted) {
    while (!names_.insert(wanted).second) wanted += "_";
    return wanted;
  }

  void add_value(proto::onnx::ValueInfoProto& value, const std::string& value_name,
                 const Shape& shape) {
    value.set_name(value_name);
    auto& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(kFloats);
    type.mutable_shape()->add_dim()->set_dim_param("N");
    const bool is_map = shape.size() == 3;
    const Shape sides = is_map ? Shape{shape[2], shape[0], shape[1]} : shape;
    for (const std::int64_t side : sides) type.mutable_shape()->add_dim()->set_dim_value(side);
  }

  TensorProto& add_tensor(const std::string& tensor_name, std::int32_t type, const Shape& shape) {
    TensorProto& tensor = *onnx().add_initializer();
    tensor.set_name(tensor_name);
    tensor.set_data_type(type);
    for (const std::int64_t side : shape) tensor.add_dims(side);
    return tensor;
  }

  void add_weights() {
    const std::size_t parameters = graph_.parameters.size();
    for (std::size_t i = 0; i < parameters + graph_.state.size(); ++i) {
      const bool is_parameter = i < parameters;
      const Shape& shape =
          is_parameter ? graph_.parameters[i].file_shape : graph_.state[i - parameters].shape;
      weights_.push_back(
          new_name(is_parameter ? graph_.parameters[i].name : graph_.state[i - parameters].name));
      const std::vector<float> values = read_(i);
      check(static_cast<std::int64_t>(values.size()) == num_elements(shape),
            "a tensor has the size of its shape");
      // raw_data is little-endian, as every machine that this program runs on.
      const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
      add_tensor(weights_.back(), kFloats, shape)
          .set_raw_data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }

  // Adds a list of integers, or a number, that a node reads; returns its name.
  std::string list(const std::string& suffix, const Integers& values) {
    const std::string tensor_name = new_name(output() + "." + suffix);
    TensorProto& tensor =
        add_tensor(tensor_name, kIntegers, {static_cast<std::int64_t>(values.size())});
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return tensor_name;
  }
  std::string number(const std::string& suffix, float value) {
    const std::string tensor_name = new_name(output() + "." + suffix);
    add_tensor(tensor_name, kFloats, {}).add_float_data(value);
    return tensor_name;
  }

  // Adds an operator. It computes the result of the node, or a value between if there is a suffix.
  NodeProto& add_operator(std::string_view kind, const std::vector<std::string>& inputs,
                          const std::string& suffix = "") {
    NodeProto& added = *onnx().add_node();
    added.set_op_type(std::string(kind));
    added.add_output(suffix.empty() ? output() : new_name(output() + "." + suffix));
    added.set_name(added.output(0));
    for (const std::string& each : inputs) added.add_input(each);
    return added;
  }
  std::string value_between(std::string_view kind, const std::vector<std::string>& inputs,
                            const std::string& suffix) {
    return add_operator(kind, inputs, suffix).output(0);
  }
  // Adds an operator that reads the node's input and its weights, then its state.
  NodeProto& add_layer(std::string_view kind, const Node& node) {
    std::vector<std::string> inputs = {input(node)};
    for (const int i : node.parameters) inputs.push_back(weights_[index(i)]);
    for (const int i : node.state) inputs.push_back(weights_[graph_.parameters.size() + index(i)]);
    return add_operator(kind, inputs);
  }
  std::string transposed(const std::string& value, const Integers& order,
                         const std::string& suffix) {
    NodeProto& added = add_operator("Transpose", {value}, suffix);
    set(added, "perm", order);
    return added.output(0);
  }

  void add(const Node& node, const InputOp& operation) {
    auto& added = *onnx().add_input();
    if (!operation.is_plane) return add_value(added, output(), node.shape);
    add_value(added, output(), {node.shape[0], node.shape[1]});
    values_.back() = value_between("Unsqueeze", {output(), list("axes", {1})}, "map");
  }

  template <typename Convolution>
  static void set_convolution(const Convolution& operation, NodeProto& added) {
    set(added, "kernel_shape", Integers{operation.kernel_h, operation.kernel_w});
    set(added, "strides", Integers{operation.stride, operation.stride});
    set_pads(added, operation.pad);
  }
  void add(const Node& node, const Conv2dOp& operation) {
    NodeProto& added = add_layer("Conv", node);
    set_convolution(operation, added);
    set(added, "group", std::int64_t{operation.groups});
  }
  void add(const Node& node, const ConvTranspose2dOp& operation) {
    set_convolution(operation, add_layer("ConvTranspose", node));
  }

  void add(const Node& node, const BatchNormOp& operation) {
    NodeProto& added = add_layer("BatchNormalization", node);
    set(added, "epsilon", operation.epsilon);
    set(added, "momentum", 1.0F - operation.momentum);
  }

  void add(const Node& node, const DropoutOp& operation) {
    add_operator("Dropout", {input(node), number("ratio", operation.rate)});
  }
  void add(const Node& node, const ReluOp& /*operation*/) { add_operator("Relu", {input(node)}); }

  void add(const Node& node, const ActivationOp& operation) {
    const std::string& x = input(node);
    switch (operation.kind) {
      case Activation::kSigmoid:
        add_operator("Sigmoid", {x});
        return;
      case Activation::kTanh:
        add_operator("Tanh", {x});
        return;
      case Activation::kGelu:
        add_gelu(x);
        return;
      case Activation::kSilu:
        add_operator("Mul", {x, value_between("Sigmoid", {x}, "sigmoid")});
        return;
      case Activation::kHardSwish:
        add_operator("HardSwish", {x});
        return;
      case Activation::kRelu6:
        add_operator("Clip", {x, number("min", 0.0F), number("max", 6.0F)});
        return;
      case Activation::kHardSigmoid: {
        NodeProto& added = add_operator("HardSigmoid", {x});
        set(added, "alpha", 1.0F / 6.0F);
        set(added, "beta", 0.5F);
        return;
      }
      case Activation::kLeakyRelu:
        set(add_operator("LeakyRelu", {x}), "alpha", operation.slope);
        return;
      case Activation::kClip:
        add_operator("Clip", {x, number("min", operation.low), number("max", operation.high)});
        return;
      case Activation::kLinear: {
        const std::string product =
            value_between("Mul", {x, number("factor", operation.factor)}, "product");
        add_operator("Add", {product, number("offset", operation.offset)});
        return;
      }
    }
  }
  // x * (1 + erf(x / sqrt(2))) / 2: Gelu is an operator from opset 20 on only.
  void add_gelu(const std::string& x) {
    const std::string scaled =
        value_between("Div", {x, number("sqrt2", std::numbers::sqrt2_v<float>)}, "scaled");
    const std::string erf = value_between("Erf", {scaled}, "erf");
    const std::string sum = value_between("Add", {erf, number("one", 1.0F)}, "sum");
    const std::string product = value_between("Mul", {x, sum}, "product");
    add_operator("Mul", {product, number("half", 0.5F)});
  }

  void add(const Node& node, const MaxPoolOp& operation) {
    set_window(add_operator("MaxPool", {input(node)}), operation.window, operation.stride,
               operation.pad);
  }
  void add(const Node& node, const AveragePoolOp& operation) {
    NodeProto& added = add_operator("AveragePool", {input(node)});
    set_window(added, operation.window, operation.stride, operation.pad);
    set(added, "count_include_pad", std::int64_t{1});
  }
  void add(const Node& node, const GlobalAveragePoolOp& /*operation*/) {
    add_flatten(value_between("GlobalAveragePool", {input(node)}, "map"));
  }
  void add(const Node& node, const FlattenOp& /*operation*/) { add_flatten(input(node)); }
  void add_flatten(const std::string& x) { add_operator("Flatten", {x}); }

  void add(const Node& node, const DenseOp& /*operation*/) {
    set(add_layer("Gemm", node), "transB", std::int64_t{1});
  }
  void add(const Node& node, const AddOp& /*operation*/) {
    add_operator("Add", {input(node), input(node, 1)});
  }
  void add(const Node& node, const MultiplyOp& /*operation*/) {
    const Shape& factors = graph_.nodes[index(node.inputs[1])].shape;
    const bool is_vector_of_map = node.shape.size() == 3 && factors.size() == 1;
    add_operator("Mul", {input(node),
                         is_vector_of_map
                             ? value_between("Reshape",
                                             {input(node, 1), list("pixel", {0, factors[0], 1, 1})},
                                             "factors")
                             : input(node, 1)});
  }
  void add(const Node& node, const ConcatOp& /*operation*/) {
    std::vector<std::string> inputs;
    for (const NodeId id : node.inputs) inputs.push_back(values_[index(id)]);
    set(add_operator("Concat", inputs), "axis", std::int64_t{1});
  }

  void add(const Node& node, const SliceOp& operation) {
    add_operator("Slice", {input(node), list("starts", {operation.first}),
                           list("ends", {operation.first + node.shape.back()}), list("axes", {1})});
  }

  void add(const Node& node, const UpsampleOp& operation) {
    const std::string scales = new_name(output() + ".scales");
    const auto scale = static_cast<float>(operation.scale);
    TensorProto& tensor = add_tensor(scales, kFloats, {4});
    for (const float each : {1.0F, 1.0F, scale, scale}) tensor.add_float_data(each);
    NodeProto& added = add_operator("Resize", {input(node), "", scales});
    const bool is_nearest = operation.mode == Interpolation::kNearest;
    set(added, "mode", is_nearest ? "nearest" : "linear");
    set(added, "coordinate_transformation_mode", is_nearest ? "asymmetric" : "half_pixel");
    if (is_nearest) set(added, "nearest_mode", "floor");
  }
  void add(const Node& node, const SoftmaxOp& /*operation*/) {
    set(add_operator("Softmax", {input(node)}), "axis", std::int64_t{1});
  }

  // The operators below compute in the order H, W, C, and their results return to C, H, W.
  std::string channels_last(const Node& node, std::size_t i, const std::string& suffix) {
    const bool is_map = graph_.nodes[index(node.inputs[i])].shape.size() == 3;
    return is_map ? transposed(input(node, i), {0, 2, 3, 1}, suffix) : input(node, i);
  }
  NodeProto& add_channels_last(const Node& node, std::string_view kind,
                               const std::vector<std::string>& inputs) {
    const bool is_map = node.shape.size() == 3;
    NodeProto& added = add_operator(kind, inputs, is_map ? "channels_last" : "");
    if (is_map) set(add_operator("Transpose", {added.output(0)}), "perm", Integers{0, 3, 1, 2});
    return added;
  }
  void add(const Node& node, const ReshapeOp& /*operation*/) {
    Integers shape = {0};  // as many samples as before
    shape.insert(shape.end(), node.shape.begin(), node.shape.end());
    add_channels_last(node, "Reshape", {channels_last(node, 0, "map"), list("shape", shape)});
  }
  void add(const Node& node, const MatmulOp& /*operation*/) {
    add_channels_last(node, "MatMul",
                      {channels_last(node, 0, "left"), channels_last(node, 1, "right")});
  }

  void add(const Node& node, const LayerNormOp& operation) {
    NodeProto& added =
        add_channels_last(node, "LayerNormalization",
                          {channels_last(node, 0, "map"), weights_[index(node.parameters[0])],
                           weights_[index(node.parameters[1])]});
    set(added, "axis", std::int64_t{-1});
    set(added, "epsilon", operation.epsilon);
  }

  // Returns the axis of [N, C, H, W] that is an axis of H, W, C.
  static std::int64_t file_axis(int axis) { return std::array{2, 3, 1}.at(index(axis)); }
  void add(const Node& node, const TransposeOp& operation) {
    set(add_operator("Transpose", {input(node)}), "perm",
        Integers{0, file_axis(operation.order[2]), file_axis(operation.order[0]),
                 file_axis(operation.order[1])});
  }
  void add(const Node& node, const ReduceMeanOp& operation) {
    const bool is_map = node.shape.size() == 3;
    Integers axes;
    for (int axis = 0; axis < 3; ++axis) {
      if (operation.axes[index(axis)]) axes.push_back(is_map ? file_axis(axis) : 1);
    }
    set(add_operator("ReduceMean", {input(node)}), "axes", axes);
  }

  void add(const Node& node, const ShortcutOp& operation) {
    constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
    const std::string pixels =
        value_between("Slice",
                      {input(node), list("starts", {0, 0}), list("ends", {kEnd, kEnd}),
                       list("axes", {2, 3}), list("steps", {operation.stride, operation.stride})},
                      "pixels");
    const std::int64_t channels = node.shape[2] - input_shape(node)[2];
    add_operator("Pad", {pixels, list("pads", {0, 0, 0, 0, 0, channels, 0, 0})});
  }

  void add(const Node& /*node*/, const LossOp& /*operation*/) {
    throw InternalError("the loss is the last node");
  }

  const Graph& graph_;
  const ReadTensor& read_;
  ModelProto model_;
  std::set<std::string> names_ = {kLogits};  // of values
  std::vector<std::string> values_;          // by node
  std::vector<std::string> weights_;         // of parameters, then of the state
};

}  // namespace

void write_onnx_network(const Graph& graph, const ReadTensor& read,
                        const std::map<std::string, std::string>& metadata,
                        const std::filesystem::path& path) {
  // protobuf counts bytes in an int; names and nodes of a network take far less than 1 MiB.
  constexpr std::int64_t kMostBytes = std::numeric_limits<std::int32_t>::max() - (1 << 20);
  if (graph.num_parameters() > kMostBytes / static_cast<std::int64_t>(sizeof(float))) {
    throw UsageError(fmt::format(
        "{} has {} parameters, more than an ONNX file of 2 GiB holds; export the weights alone, "
        "without --onnx",
        graph.name, graph.num_parameters()));
  }
  ModelProto model = OnnxWriter(graph, read).model();
  for (const auto& [key, value] : metadata) {
    auto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  const std::string bytes = model.SerializeAsString();
  replace_file(path, bytes);
}

}  // namespace syncopate
