// Adds nodes to a graph, and infers and checks their shapes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/base/errors.h"
#include "models/graph/graph.h"

namespace syncopate {
namespace {

// Returns the number of positions of a convolution's or pool's window in one dimension of a map.
// Throws ShapeError when there is none.
std::int64_t window_count(std::int64_t size, int window, int stride, int before, int after,
                          std::string_view what) {
  const std::int64_t span = size + before + after - window;
  if (window < 1 || stride < 1 || before < 0 || after < 0 || span < 0) {
    throw ShapeError(fmt::format(
        "{}: a window of {} with stride {} and padding {} does not fit into a map of size {}", what,
        window, stride,
        before == after ? fmt::format("{}", before) : fmt::format("{} and {}", before, after),
        size));
  }
  return span / stride + 1;
}

// Throws ShapeError unless every window of a convolution has a pixel of the map: oneDNN 2.6
// computes wrong weight gradients otherwise.
void require_padding_below_kernel(const Padding& pad, int kernel_h, int kernel_w,
                                  std::string_view what) {
  const int rows = std::max(pad.top, pad.bottom);
  const int columns = std::max(pad.left, pad.right);
  if ((rows > 0 && rows >= kernel_h) || (columns > 0 && columns >= kernel_w)) {
    throw ShapeError(fmt::format(
        "{}: a padding of {} with a kernel of {}x{}; expected a padding below the kernel", what,
        std::max(rows, columns), kernel_h, kernel_w));
  }
}

// Returns the weight of a convolution from `in` to `out` channels, with these axes in files.
Parameter weight_of_convolution(std::string_view name, const std::array<std::int64_t, 4>& file_axes,
                                bool bias, std::int64_t fan_in, std::int64_t fan_out) {
  const auto [k, c, rows, columns] = file_axes;
  Parameter weight;
  weight.name = std::string(name) + ".weight";
  weight.shape = {k, rows, columns, c};
  weight.file_shape = {k, c, rows, columns};
  weight.file_axes = file_axes;
  weight.init = bias ? Init::kGlorotUniform : Init::kHeUniform;
  weight.fan_in = rows * columns * fan_in;
  weight.fan_out = rows * columns * fan_out;
  weight.decays = true;
  return weight;
}

// Returns the shape of a pooled map. Pool: MaxPoolOp or AveragePoolOp.
template <typename Pool>
Shape pooled_shape(const Shape& in, const Pool& pool, std::string_view what) {
  if (pool.window <= 2 * std::int64_t{pool.pad}) {
    throw ShapeError(
        fmt::format("{}: a window of {} with padding {} could lie outside of the map; "
                    "expected a padding below half the window",
                    what, pool.window, pool.pad));
  }
  return {window_count(in[0], pool.window, pool.stride, pool.pad, pool.pad, what),
          window_count(in[1], pool.window, pool.stride, pool.pad, pool.pad, what), in[2]};
}

// Throws ShapeError unless two inputs of an operation have one shape.
void require_equal_shapes(const Shape& a, const Shape& b, std::string_view what) {
  if (a == b) return;
  throw ShapeError(fmt::format("{}: found shapes {} and {}; expected equal shapes", what,
                               to_string(a), to_string(b)));
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name) { graph_.name = std::move(name); }

const Shape& GraphBuilder::shape(NodeId node) const {
  if (node < 0 || std::cmp_greater_equal(node, graph_.nodes.size())) {
    throw ShapeError(
        fmt::format("there is no node {}; this network has {} so far", node, graph_.nodes.size()));
  }
  return graph_.nodes[static_cast<std::size_t>(node)].shape;
}

NodeId GraphBuilder::append(std::string_view name, Operation operation, std::vector<NodeId> inputs,
                            Shape shape) {
  // Layers of --head get their names here, which another layer may have.
  if (!name.empty() && std::ranges::find(graph_.nodes, name, &Node::name) != graph_.nodes.end()) {
    throw ShapeError(fmt::format("there is already a node '{}'", name));
  }
  Node node;
  node.name = name;
  node.operation = std::move(operation);
  node.inputs = std::move(inputs);
  node.shape = std::move(shape);
  graph_.nodes.push_back(std::move(node));
  return static_cast<NodeId>(graph_.nodes.size()) - 1;
}

NodeId GraphBuilder::input(Shape sample_shape, InputOp operation, std::string_view name) {
  for (const NodeId other : graph_.inputs()) {
    if (graph_.nodes[static_cast<std::size_t>(other)].name == name) {
      throw ShapeError(fmt::format("input: there is already an input '{}'", name));
    }
  }
  if (operation.dtype != DType::kU8 && operation.dtype != DType::kU16 &&
      operation.dtype != DType::kF32) {
    throw ShapeError(fmt::format("input {}: found {} samples; a network reads u8, u16 or f32", name,
                                 syncopate::name(operation.dtype)));
  }
  const bool is_map = sample_shape.size() == 3;
  if (!is_map && sample_shape.size() != 1) {
    throw ShapeError(
        fmt::format("input: expected [H, W, C] or [F], found {}", to_string(sample_shape)));
  }
  const bool by_feature = !is_map && operation.mean.size() > 1;
  const auto channels = static_cast<std::size_t>(is_map || by_feature ? sample_shape.back() : 1);
  if (operation.mean.empty()) operation.mean.assign(channels, 0.0F);
  if (operation.stddev.empty()) operation.stddev.assign(channels, 1.0F);
  if (operation.mean.size() != channels || operation.stddev.size() != channels) {
    throw ShapeError(fmt::format(
        "input: found {} means and {} standard deviations; expected one of each for {} channels",
        operation.mean.size(), operation.stddev.size(), channels));
  }
  return append(name, std::move(operation), {}, std::move(sample_shape));
}

void GraphBuilder::add_weights(std::string_view name, Parameter weight, std::int64_t biases) {
  Node& node = graph_.nodes.back();
  node.parameters.push_back(static_cast<int>(graph_.parameters.size()));
  graph_.parameters.push_back(std::move(weight));
  if (biases == 0) return;
  node.parameters.push_back(static_cast<int>(graph_.parameters.size()));
  graph_.parameters.push_back(
      {.name = std::string(name) + ".bias", .shape = {biases}, .file_shape = {biases}});
}

NodeId GraphBuilder::conv2d(NodeId x, std::string_view name, int out_channels, Conv2dOp operation) {
  const Shape in = map_shape(x, fmt::format("conv2d {}", name));
  require_padding_below_kernel(operation.pad, operation.kernel_h, operation.kernel_w, name);
  const int groups = operation.groups;
  if (groups < 1 || in[2] % groups != 0 || out_channels % groups != 0) {
    throw ShapeError(
        fmt::format("{}: {} groups of {} input and {} output channels; expected a number of groups "
                    "that divides both",
                    name, groups, in[2], out_channels));
  }
  const Padding& pad = operation.pad;
  const std::int64_t h =
      window_count(in[0], operation.kernel_h, operation.stride, pad.top, pad.bottom, name);
  const std::int64_t w =
      window_count(in[1], operation.kernel_w, operation.stride, pad.left, pad.right, name);
  const NodeId id = append(name, operation, {x}, {h, w, out_channels});
  add_weights(name,
              weight_of_convolution(
                  name, {out_channels, in[2] / groups, operation.kernel_h, operation.kernel_w},
                  operation.bias, in[2] / groups, out_channels),
              operation.bias ? out_channels : 0);
  return id;
}

NodeId GraphBuilder::conv_transpose2d(NodeId x, std::string_view name, int out_channels,
                                      ConvTranspose2dOp operation) {
  const Shape in = map_shape(x, fmt::format("conv_transpose2d {}", name));
  const Padding& pad = operation.pad;
  require_padding_below_kernel(pad, operation.kernel_h, operation.kernel_w, name);
  const std::int64_t h = (in[0] - 1) * operation.stride + operation.kernel_h - pad.rows();
  const std::int64_t w = (in[1] - 1) * operation.stride + operation.kernel_w - pad.columns();
  if (h < 1 || w < 1 || operation.stride < 1) {
    throw ShapeError(fmt::format(
        "{}: a map of {} with a kernel of {}x{}, stride {} and this padding gives one of {}x{}; "
        "expected at least one pixel",
        name, to_string(in), operation.kernel_h, operation.kernel_w, operation.stride, h, w));
  }
  const NodeId id = append(name, operation, {x}, {h, w, out_channels});
  add_weights(
      name,
      weight_of_convolution(name, {in[2], out_channels, operation.kernel_h, operation.kernel_w},
                            operation.bias, in[2], out_channels),
      operation.bias ? out_channels : 0);
  return id;
}

NodeId GraphBuilder::batch_norm(NodeId x, std::string_view name, BatchNormOp operation) {
  const Shape in = map_shape(x, fmt::format("batch_norm {}", name));
  const NodeId id = append(name, operation, {x}, in);
  const Shape channels = {in[2]};
  const auto first = static_cast<int>(graph_.parameters.size());
  graph_.parameters.push_back({.name = std::string(name) + ".weight",
                               .shape = channels,
                               .file_shape = channels,
                               .init = Init::kOnes});
  graph_.parameters.push_back(
      {.name = std::string(name) + ".bias", .shape = channels, .file_shape = channels});
  const auto first_state = static_cast<int>(graph_.state.size());
  graph_.state.push_back({std::string(name) + ".running_mean", channels, 0.0F});
  graph_.state.push_back({std::string(name) + ".running_var", channels, 1.0F});
  graph_.nodes.back().parameters = {first, first + 1};
  graph_.nodes.back().state = {first_state, first_state + 1};
  return id;
}

std::optional<std::array<std::int64_t, 3>> GraphBuilder::flattened_map(NodeId x) const {
  if (shape(x).size() != 1) return std::nullopt;
  const Node& node = graph_.nodes.at(static_cast<std::size_t>(x));
  const bool makes_features = std::holds_alternative<InputOp>(node.operation) ||
                              std::holds_alternative<DenseOp>(node.operation) ||
                              std::holds_alternative<GlobalAveragePoolOp>(node.operation) ||
                              std::holds_alternative<ReshapeOp>(node.operation) ||
                              std::holds_alternative<ReduceMeanOp>(node.operation) ||
                              std::holds_alternative<SliceOp>(node.operation) ||
                              std::holds_alternative<ConcatOp>(node.operation);
  if (makes_features) return std::nullopt;
  // All other operations keep the order of their inputs, which is one order (require_one_order).
  const Shape& map = shape(node.inputs.at(0));
  if (map.size() != 3) return flattened_map(node.inputs.at(0));
  return std::array{map[2], map[0], map[1]};
}

Shape GraphBuilder::map_shape(NodeId x, std::string_view what) const {
  const Shape& found = shape(x);
  if (found.size() == 3) return found;
  throw ShapeError(fmt::format("{}: expected a map [H, W, C], found {}", what, to_string(found)));
}

void GraphBuilder::require_one_order(std::span<const NodeId> inputs, bool is_joined,
                                     std::string_view operation) const {
  // Of a map with one channel or one pixel both orders are the same.
  const auto reordered = [&](NodeId x) {
    const auto map = flattened_map(x);
    return map && (*map)[0] > 1 && (*map)[1] * (*map)[2] > 1 ? map : std::nullopt;
  };
  const auto first = reordered(inputs[0]);
  for (const NodeId x : inputs) {
    if (reordered(x) == first && !(is_joined && first)) continue;
    throw ShapeError(fmt::format(
        "{}: found a flattened map, whose elements have the order H, W, C here and C, H, W in "
        "PyTorch; put a dense layer or global_average_pool behind the map, or reshape it in place "
        "of flatten",
        operation));
  }
}

NodeId GraphBuilder::layer_norm(NodeId x, std::string_view name, LayerNormOp operation) {
  const NodeId id = append(name, operation, {x}, Shape(shape(x)));
  Parameter weight{.name = std::string(name) + ".weight",
                   .shape = {shape(x).back()},
                   .file_shape = {shape(x).back()},
                   .init = Init::kOnes};
  const auto map = shape(x).size() == 1 ? flattened_map(x) : std::nullopt;
  if (map) weight.file_axes = {1, (*map)[0], (*map)[1], (*map)[2]};
  Parameter bias = weight;
  bias.name = std::string(name) + ".bias";
  bias.init = Init::kZeros;
  const auto first = static_cast<int>(graph_.parameters.size());
  graph_.parameters.push_back(std::move(weight));
  graph_.parameters.push_back(std::move(bias));
  graph_.nodes.back().parameters = {first, first + 1};
  return id;
}

NodeId GraphBuilder::dropout(NodeId x, std::string_view name, DropoutOp operation) {
  if (!(operation.rate >= 0.0F && operation.rate < 1.0F)) {
    throw ShapeError(
        fmt::format("dropout {}: found a rate of {}; expected 0 or more, and less than 1", name,
                    operation.rate));
  }
  if (name.empty()) throw ShapeError("dropout: found no name; the mask depends on it");
  return append(name, operation, {x}, Shape(shape(x)));
}

NodeId GraphBuilder::relu(NodeId x) { return append("", ReluOp{}, {x}, Shape(shape(x))); }

NodeId GraphBuilder::activation(NodeId x, Activation kind) {
  return append("", ActivationOp{.kind = kind}, {x}, Shape(shape(x)));
}

NodeId GraphBuilder::leaky_relu(NodeId x, float slope) {
  if (!std::isfinite(slope)) {
    throw ShapeError(fmt::format("leaky_relu: found a slope of {}; expected a number", slope));
  }
  return append("", ActivationOp{.kind = Activation::kLeakyRelu, .slope = slope}, {x},
                Shape(shape(x)));
}

NodeId GraphBuilder::clip(NodeId x, float low, float high) {
  if (!(low < high)) {
    throw ShapeError(
        fmt::format("clip: found the bounds {} and {}; expected the lower one first", low, high));
  }
  return append("", ActivationOp{.kind = Activation::kClip, .low = low, .high = high}, {x},
                Shape(shape(x)));
}

NodeId GraphBuilder::linear(NodeId x, float factor, float offset) {
  return append("", ActivationOp{.kind = Activation::kLinear, .factor = factor, .offset = offset},
                {x}, Shape(shape(x)));
}

NodeId GraphBuilder::max_pool(NodeId x, MaxPoolOp operation) {
  Shape pooled = pooled_shape(map_shape(x, "max_pool"), operation, "max_pool");
  return append("", operation, {x}, std::move(pooled));
}

NodeId GraphBuilder::average_pool(NodeId x, AveragePoolOp operation) {
  Shape pooled = pooled_shape(map_shape(x, "average_pool"), operation, "average_pool");
  return append("", operation, {x}, std::move(pooled));
}

NodeId GraphBuilder::global_average_pool(NodeId x) {
  const Shape in = map_shape(x, "global_average_pool");
  return append("", GlobalAveragePoolOp{}, {x}, {in[2]});
}

NodeId GraphBuilder::flatten(NodeId x) {
  return append("", FlattenOp{}, {x}, {num_elements(shape(x))});
}

NodeId GraphBuilder::dense(NodeId x, std::string_view name, int out_features, Init init,
                           DenseOp operation) {
  const Shape in = shape(x);
  if (in.size() != 1) {
    throw ShapeError(fmt::format("dense {}: expected a vector [F], found {}; flatten it first",
                                 name, to_string(in)));
  }
  const NodeId id = append(name, operation, {x}, {out_features});
  Parameter weight;
  weight.name = std::string(name) + ".weight";
  weight.shape = {out_features, in[0]};
  weight.file_shape = weight.shape;
  // A dense weight after a flatten: columns in H, W, C order in memory, C, H, W order in files.
  if (const auto map = flattened_map(x)) {
    weight.file_axes = {out_features, (*map)[0], (*map)[1], (*map)[2]};
  }
  weight.init = init;
  weight.fan_in = in[0];
  weight.fan_out = out_features;
  weight.decays = true;
  add_weights(name, std::move(weight), operation.bias ? out_features : 0);
  return id;
}

NodeId GraphBuilder::add(NodeId a, NodeId b) {
  require_equal_shapes(shape(a), shape(b), "add");
  require_one_order(std::array{a, b}, false, "add");
  return append("", AddOp{}, {a, b}, Shape(shape(a)));
}

NodeId GraphBuilder::multiply(NodeId a, NodeId b) {
  const auto are_factors = [&](NodeId factors, NodeId map) {
    const Shape& shape_of_map = shape(map);
    if (shape_of_map.size() != 3 || shape(factors) == shape_of_map) return false;
    return shape(factors) == Shape{shape_of_map[2]} ||
           shape(factors) == Shape{1, 1, shape_of_map[2]};
  };
  if (are_factors(a, b)) std::swap(a, b);
  const bool has_factors = are_factors(b, a);
  if (!has_factors) require_equal_shapes(shape(a), shape(b), "multiply");
  const std::array both = {a, b};
  require_one_order(std::span(both).subspan(has_factors ? 1 : 0), has_factors, "multiply");
  return append("", MultiplyOp{}, {a, b}, Shape(shape(a)));
}

NodeId GraphBuilder::concat(std::vector<NodeId> inputs) {
  if (inputs.size() < 2) throw ShapeError("concat: found fewer than two inputs");
  Shape joined = shape(inputs[0]);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Shape& other = shape(inputs[i]);
    if (other.size() != joined.size() ||
        !std::equal(other.begin(), other.end() - 1, joined.begin())) {
      throw ShapeError(
          fmt::format("concat: found shapes {} and {}; expected maps of one size, or vectors",
                      to_string(shape(inputs[0])), to_string(other)));
    }
    joined.back() += other.back();
  }
  require_one_order(inputs, true, "concat");
  return append("", ConcatOp{}, std::move(inputs), std::move(joined));
}

NodeId GraphBuilder::shortcut(NodeId x, int stride, int out_channels) {
  const Shape in = map_shape(x, "shortcut");
  if (out_channels < in[2] || stride < 1) {
    throw ShapeError(fmt::format(
        "shortcut: found {} to {} channels with stride {}; expected at least as many output as "
        "input channels and a positive stride",
        in[2], out_channels, stride));
  }
  return append("", ShortcutOp{stride}, {x},
                {(in[0] - 1) / stride + 1, (in[1] - 1) / stride + 1, out_channels});
}

Graph GraphBuilder::finish(NodeId logits, LossOp operation) {
  const Shape& in = shape(logits);
  if (!has_classes(operation.kind) && (in.size() != 1 || operation.label_smoothing != 0.0F)) {
    throw ShapeError(fmt::format(
        "loss: {} of {}{}; expected a vector [K], and no smoothing of numbers",
        name(operation.kind), to_string(in), in.size() == 1 ? " with label smoothing" : ""));
  }
  require_one_order(std::array{logits}, true, "loss");
  if (has_classes(operation.kind) && in.size() == 3 && in[2] > kUncounted) {
    throw ShapeError(
        fmt::format("loss: {} classes of pixels; expected at most {}", in[2], kUncounted));
  }
  append("", operation, {logits}, {});
  return std::move(graph_);
}

}  // namespace syncopate
