// A network as data: nodes in forward order, named parameters and named state. Who computes it, in
// which layout and with what fused together is the backend's business.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/tensor/parameter_arena.h"
#include "models/tensor/tensor.h"

namespace syncopate {

using NodeId = int;

// First values of a parameter. The uniform ones need only a square root, so they are the same bits
// on every machine. Source: He et al. 2015 (variance 2 / fan_in), Glorot and Bengio 2010 (2 / (in +
// out)).
enum class Init : std::uint8_t { kZeros, kOnes, kHeUniform, kGlorotUniform };

// A trained tensor. In memory a convolution's weight is [K, R, S, C] and a dense one's [out, in]
// with `in` = H, W, C; in files both follow PyTorch: [K, C, R, S], and `in` = C, H, W.
struct Parameter {
  std::string name;  // "layer1.0.conv1.weight"
  Shape shape;       // as in memory
  Shape file_shape;  // as in files
  // The file's axes K, C, R, S, for tensors whose two layouts differ; {} where they are the same.
  std::array<std::int64_t, 4> file_axes{};
  Init init = Init::kZeros;
  std::int64_t fan_in = 1;
  std::int64_t fan_out = 1;
  bool decays = false;  // weight decay applies: convolution and dense weights only
};

// Batch norm's running mean or variance, [C].
struct State {
  std::string name;
  Shape shape;
  float initial = 0.0F;
};

// What the operations do. Per-sample shapes are [H, W, C] for maps and [F] for vectors.

// The samples. u8 pixels v become (v / 255 - mean[c]) / stddev[c]; f32 ones are taken as they are.
struct InputOp {
  DType dtype = DType::kU8;
  std::vector<float> mean;    // [C]
  std::vector<float> stddev;  // [C]
};
// Cross-correlation with zero padding. y[k] = sum over r, s, c of x * w (+ bias).
struct Conv2dOp {
  int kernel_h = 3;
  int kernel_w = 3;
  int stride = 1;
  int pad = 0;
  bool bias = false;
};
// Source: Ioffe and Szegedy 2015; running statistics as PyTorch keeps them (unbiased variance,
// running = (1 - momentum) * running + momentum * batch).
struct BatchNormOp {
  float epsilon = 1e-5F;
  float momentum = 0.1F;
};
struct ReluOp {};
// The map is `pad` pixels larger on each side; of a window only what lies inside counts. One that
// does not fit is dropped, as in TensorFlow's "valid". window > 2 * pad, so that each holds a
// pixel.
struct MaxPoolOp {
  int window = 2;
  int stride = 2;
  int pad = 0;
};
struct GlobalAveragePoolOp {};
struct FlattenOp {};
struct DenseOp {};
struct AddOp {};
// ResNet's shortcut A: every `stride`-th pixel, new channels zero, at the end.
// Source: He et al. 2016, section 4.2.
struct ShortcutOp {
  int stride = 2;
};
// The last node: the samples' losses, summed and divided by the batch's loss_divisor, and how many
// samples were right.
// Inputs: logits [classes]; labels come with the batch.
struct SoftmaxCrossEntropyOp {};

using Operation =
    std::variant<InputOp, Conv2dOp, BatchNormOp, ReluOp, MaxPoolOp, GlobalAveragePoolOp, FlattenOp,
                 DenseOp, AddOp, ShortcutOp, SoftmaxCrossEntropyOp>;

struct Node {
  std::string name;  // "layer1.0.conv1"; "" where the node has no parameters
  Operation operation;
  std::vector<NodeId> inputs;
  Shape shape;                  // of the output, per sample
  std::vector<int> parameters;  // indices into Graph::parameters: weight, then bias
  std::vector<int> state;       // indices into Graph::state: running mean, then running variance
};

struct Graph {
  std::string name;  // "resnet20"
  std::vector<Node> nodes;
  std::vector<Parameter> parameters;
  std::vector<State> state;

  const Shape& input_shape() const { return nodes.front().shape; }  // [H, W, C]
  std::int64_t num_classes() const;
  std::int64_t num_parameters() const;  // elements
  ArenaLayout parameter_layout() const;
  ArenaLayout state_layout() const;
};

// Builds a graph node by node; shapes are inferred and checked as nodes are added.
// Every function returns the new node and throws ShapeError when the input does not fit.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name);

  NodeId input(Shape sample_shape, InputOp operation);  // [H, W, C] or [F]; must come first
  NodeId conv2d(NodeId x, std::string_view name, int out_channels, Conv2dOp operation);
  NodeId batch_norm(NodeId x, std::string_view name, BatchNormOp operation = {});
  NodeId relu(NodeId x);
  NodeId max_pool(NodeId x, MaxPoolOp operation = {});
  NodeId global_average_pool(NodeId x);
  NodeId flatten(NodeId x);
  // `init`: Glorot for the guides' networks, He before a ReLU.
  NodeId dense(NodeId x, std::string_view name, int out_features, Init init = Init::kGlorotUniform);
  NodeId add(NodeId a, NodeId b);
  NodeId shortcut(NodeId x, int stride, int out_channels);
  // Adds the loss and hands over the graph; the builder is spent.
  Graph finish(NodeId logits);

 private:
  NodeId append(std::string_view name, Operation operation, std::vector<NodeId> inputs,
                Shape shape);
  const Shape& shape(NodeId node) const;

  Graph graph_;
};

// Element `file_index` of a parameter is a function of (seed, name, file_index): never of the rank,
// the layout or the order of construction. Fills value [parameter.shape] f32 on the host.
void fill_initial_value(const Parameter& parameter, std::uint64_t seed, const Tensor& value);
// All parameters of an arena (padding stays zero) and all state.
void fill_initial_values(const Graph& graph, std::uint64_t seed, ParameterArena& arena);
void fill_initial_state(const Graph& graph, StateBlock& state);

// Copies between the order in memory and the order in files; both [size] f32.
void memory_to_file_order(const Parameter& parameter, std::span<const float> memory,
                          std::span<float> file);
void file_to_memory_order(const Parameter& parameter, std::span<const float> file,
                          std::span<float> memory);

}  // namespace syncopate
