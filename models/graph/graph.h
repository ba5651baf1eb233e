// A network as data: nodes in forward order, named parameters and named state. The backend that
// compiles a graph decides on layouts, fusion and memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/base/enum_names.h"
#include "models/graph/activation.h"
#include "models/graph/padding.h"
#include "models/tensor/parameter_arena.h"
#include "models/tensor/tensor.h"

namespace syncopate {

using NodeId = int;

// Distributions of initial values. The uniform distributions use no function except the square
// root, so their values have the same bits on every machine. Sources: He et al. 2015 (variance 2 /
// fan_in), Glorot and Bengio 2010 (variance 2 / (fan_in + fan_out)).
enum class Init : std::uint8_t { kZeros, kOnes, kHeUniform, kGlorotUniform };
constexpr auto named_values(Init) {
  return std::array{Named{"zeros", Init::kZeros}, Named{"ones", Init::kOnes},
                    Named{"he-uniform", Init::kHeUniform},
                    Named{"glorot-uniform", Init::kGlorotUniform}};
}

// A parameter is a trained tensor. In memory, the weight of a convolution is [K, R, S, C] and the
// weight of a dense layer is [out, in], where `in` has the order H, W, C. Files use the order of
// PyTorch: [K, C, R, S], and C, H, W for `in`.
struct Parameter {
  std::string name;  // such as "layer1.0.conv1.weight"
  Shape shape;       // the parameter's shape in memory
  Shape file_shape;  // the parameter's shape in files
  // If the order of the elements in files differs from the order in memory: the sizes K, C, R, S of
  // the parameter's axes in files. Otherwise zeros.
  std::array<std::int64_t, 4> file_axes{};
  Init init = Init::kZeros;
  std::int64_t fan_in = 1;
  std::int64_t fan_out = 1;
  bool decays = false;  // whether weight decay applies; true for convolution and dense weights
};

// A state that is not trained: the running mean or variance of a batch norm, [C] f32.
struct State {
  std::string name;
  Shape shape;
  float initial = 0.0F;
};

// The operations of networks follow. All shapes are shapes of one sample: [H, W, C] for a map and
// [F] for a vector.

// An input of the network: one of the tensors of a sample. The node has the name of the tensor. A
// value v becomes (v / u - mean[c]) / stddev[c] with u = 255 for u8, 65535 for u16 and 1 for f32.
struct InputOp {
  DType dtype = DType::kU8;
  // Mean and standard deviation of v / u: [C] for a map; [1] or [F] for a vector.
  std::vector<float> mean;
  std::vector<float> stddev;
  // Whether models compute the gradient of the loss with respect to this input. True if the input
  // is the output of an earlier pipeline stage; the dtype is then f32, the mean 0 and stddev 1.
  bool is_differentiated = false;
  // Whether the program that made the network stores a batch of this map [H, W, 1] as [N, H, W],
  // without the channel axis. An example is a map in which each row is a vector of features.
  bool is_plane = false;

  float unit() const noexcept;  // returns u: 255, 65535 or 1
};
// Convolution, as cross-correlation with zero padding: y[k] = sum over r, s, c of x * w (+ bias).
// The padding at the top and the bottom is smaller than kernel_h; the padding at the left and the
// right is smaller than kernel_w. The input channels and the output channels are each divided into
// `groups` equal parts, and the output channels of part i read only the input channels of part i.
// With as many groups as input channels, the convolution is depthwise. The weight is [K, R, S, C /
// groups].
struct Conv2dOp {
  int kernel_h = 3;
  int kernel_w = 3;
  int stride = 1;
  Padding pad;
  bool bias = false;
  int groups = 1;
};
// Transposed convolution: computes the input gradient of a convolution with this kernel, stride and
// padding, where x takes the place of the output gradient. A map of H x W becomes a map of (H - 1)
// * stride + kernel_h - pad.rows() by (W - 1) * stride + kernel_w - pad.columns().
// The weight is [C, R, S, K] in memory and [C, K, R, S] in files, with C input and K output
// channels. Equal to ConvTranspose2d of PyTorch; PyTorch's output_padding is expressed by a smaller
// padding at the bottom and the right.
struct ConvTranspose2dOp {
  int kernel_h = 3;
  int kernel_w = 3;
  int stride = 2;
  Padding pad;
  bool bias = false;
};
// Batch normalisation per channel. Source: Ioffe and Szegedy 2015. The running statistics are
// computed as by PyTorch: unbiased variance, running = (1 - momentum) * running + momentum * batch.
struct BatchNormOp {
  float epsilon = 1e-5F;
  float momentum = 0.1F;
};
// Layer normalisation over the channels of each pixel of a map, or over the features of a vector.
// The values are shifted and scaled to mean 0 and biased variance 1, multiplied by weight [C], and
// bias [C] is added. Source: Ba et al. 2016; LayerNorm(C) of PyTorch on the last axis.
struct LayerNormOp {
  float epsilon = 1e-5F;
};
// Dropout: in training y = 0 with probability `rate` and x / (1 - rate) otherwise; in evaluation y
// = x. Whether an element is dropped depends only on the sample's key (Batch::keys), the node's
// name and the element's index in the order H, W, C. The mask is therefore equal on all devices and
// in all batches and layouts. Source: Srivastava et al. 2014, with the division in training.
struct DropoutOp {
  float rate = 0.5F;  // in [0, 1)

  // An element is kept if RandomStream(key, hash_name(node's name)).bits(element) is at least the
  // threshold. The threshold is 0 if all elements are kept.
  std::uint32_t threshold() const noexcept;
  float scale() const noexcept { return 1.0F / (1.0F - rate); }  // the factor of kept elements
};
struct ReluOp {};
// Max-pooling: maximum over windows of window x window pixels. The map is padded by `pad` pixels on
// each side; a padding pixel is never the maximum. A window that does not fit into the padded map
// is dropped. window > 2 * pad, so every window contains a pixel.
struct MaxPoolOp {
  int window = 2;
  int stride = 2;
  int pad = 0;
};
// Average pooling over windows of window x window pixels; padding counts as zeros. A window that
// does not fit into the padded map is dropped. window > 2 * pad. Equal to AvgPool2d of PyTorch.
struct AveragePoolOp {
  int window = 2;
  int stride = 2;
  int pad = 0;
};
struct GlobalAveragePoolOp {};
struct FlattenOp {};
struct DenseOp {
  bool bias = true;
};
struct AddOp {};
// The element-wise product of two values with equal shapes; or the product of a map [H, W, C] and
// one factor per channel, [C] or [1, 1, C].
struct MultiplyOp {};
// Concatenates the channels of all inputs, in the order of the inputs. The inputs are maps of equal
// height and width, or vectors.
struct ConcatOp {};
// Takes consecutive channels of a map, or features of a vector, from index `first` on. Node::shape
// gives the number of channels or features.
struct SliceOp {
  int first = 0;
};
// Enlarges a map of H x W pixels to scale * H x scale * W. kNearest repeats each pixel. kBilinear
// computes output pixel i by linear interpolation at the input position (i + 0.5) / scale - 0.5,
// clamped to the map, as Upsample(align_corners=False) of PyTorch and UpSampling2D of Keras.
enum class Interpolation : std::uint8_t { kNearest, kBilinear };
constexpr auto named_values(Interpolation) {
  return std::array{Named{"nearest", Interpolation::kNearest},
                    Named{"bilinear", Interpolation::kBilinear}};
}
struct UpsampleOp {
  int scale = 2;
  Interpolation mode = Interpolation::kNearest;
};
// Softmax over the channels of each pixel of a map, or over the features of a vector.
struct SoftmaxOp {};
// Gives the elements another shape, a map or a vector. The elements keep their order in memory, H,
// W, C. A view of [N, C, H, W] in PyTorch reads them in another order and equals a transpose to [C,
// H, W] followed by a reshape. If a dense layer follows a reshape, the columns of its weight have
// the order of memory in files, too.
struct ReshapeOp {};
// Permutes the axes H, W, C of a map: axis a of the output is axis order[a] of the input.
struct TransposeOp {
  std::array<int, 3> order = {0, 1, 2};
};
// The mean over some of the axes H, W, C of a map, or over a vector. These axes get the size 1.
struct ReduceMeanOp {
  std::array<bool, 3> axes = {false, false, false};  // for a vector, axes[0] is true
};
// Multiplies two maps as batches of matrices: [B, M, K] times [B, K, N] gives [B, M, N].
struct MatmulOp {};
// A residual shortcut without parameters: takes every `stride`-th pixel and appends channels of
// zeros. Source: He et al. 2016, section 4.2, option A.
struct ShortcutOp {
  int stride = 2;
};
// The kinds of losses. The targets of kSoftmaxCrossEntropy are class labels; the targets of the
// others are numbers.
//
// kSoftmaxCrossEntropy: input: logits [classes]; target: i32 [] in [0, classes); metric:
// "accuracy", 1 for a sample if the logit of its target is the largest, otherwise 0. For maps,
// every pixel has a class: logits [H, W, classes], target i32 [H, W]. The loss and the accuracy of
// a sample are then means over its pixels, except pixels with the target kUncounted. A sample with
// only such pixels has the loss 0 and the accuracy 1.
//
// kBinaryCrossEntropy: input: logits x [K]; target: t f32 [K] in [0, 1]; the loss of a sample is
// the mean over K of max(x, 0) - x * t + log(1 + exp(-|x|)), as
// binary_cross_entropy_with_logits of PyTorch; metric: "accuracy", the fraction of the K values of
// a sample with (x >= 0) == (t >= 0.5).
//
// kMeanSquaredError: input: x [K]; target: t f32 [K]; the loss of a sample is the mean over K of
// (x - t)^2, as mse_loss of PyTorch; metric: "mae", the mean over K of |x - t|.
//
// kLaterStages: the loss is computed by the later stages of a pipeline. Input: the output of this
// stage, of any shape; target: f32 of the same shape, the gradient of the loss with respect to this
// output, which only the backward pass reads. The model reports the loss 0.
enum class LossKind : std::uint8_t {
  kSoftmaxCrossEntropy,
  kBinaryCrossEntropy,
  kMeanSquaredError,
  kLaterStages
};

// The last node of a graph. Computes the loss, which is the sum of the sample losses divided by
// Batch::loss_divisor, and the sums of the metrics. The targets are Batch::target.
struct LossOp {
  LossKind kind = LossKind::kSoftmaxCrossEntropy;
  // In training, the target of a sample is (1 - label_smoothing) times its label plus
  // label_smoothing / classes for each class; evaluation uses the label alone. In [0, 1); 0 for a
  // loss with numbers as targets. Source: Szegedy et al. 2016, section 7; CrossEntropyLoss of
  // PyTorch.
  float label_smoothing = 0.0F;
};

// The target of a pixel that loss and metrics ignore.
inline constexpr std::int32_t kUncounted = 255;
// The largest number of metrics of a loss.
inline constexpr std::size_t kMostMetrics = 4;
// The index of the metric that log lines and files show and that rules on evaluations use.
inline constexpr std::size_t kMainMetric = 0;

// A metric of a loss: a number for each sample. Reports show the mean over the samples.
struct LossMetric {
  std::string_view name;  // such as "accuracy"
  // True: values are in [0, 1], and a higher value is better. False: values are at least 0, and a
  // lower value is better.
  bool is_share = true;
};

std::string_view name(LossKind kind);  // such as "softmax-cross-entropy"
// Returns the metrics of a loss, at most kMostMetrics.
std::span<const LossMetric> metrics(LossKind kind) noexcept;
// Returns whether the targets of a loss are classes, i32; otherwise they are numbers, f32.
constexpr bool has_classes(LossKind kind) noexcept {
  return kind == LossKind::kSoftmaxCrossEntropy;
}

using Operation =
    std::variant<InputOp, Conv2dOp, ConvTranspose2dOp, BatchNormOp, LayerNormOp, DropoutOp, ReluOp,
                 ActivationOp, MaxPoolOp, AveragePoolOp, GlobalAveragePoolOp, FlattenOp, DenseOp,
                 AddOp, MultiplyOp, ConcatOp, SliceOp, UpsampleOp, SoftmaxOp, ReshapeOp,
                 TransposeOp, ReduceMeanOp, MatmulOp, ShortcutOp, LossOp>;

// Returns the name of an operation in a network's text, such as "conv2d".
std::string_view name(const Operation& operation);

struct Node {
  // Such as "layer1.0.conv1". Nodes with parameters, inputs and dropouts have a name; the name of
  // other nodes is "".
  std::string name;
  Operation operation;
  std::vector<NodeId> inputs;
  Shape shape;                  // of the node's output, for one sample
  std::vector<int> parameters;  // indices into Graph::parameters: weight, then bias
  std::vector<int> state;       // indices into Graph::state: running mean, then running variance
};

struct Graph {
  std::string name;  // the network's name, such as "resnet20"
  std::vector<Node> nodes;
  std::vector<Parameter> parameters;
  std::vector<State> state;

  // Returns the input nodes of the network, in the order of Batch::inputs.
  std::vector<NodeId> inputs() const;
  std::size_t num_inputs() const noexcept;
  // Returns whether training needs Batch::keys: true if there is a dropout.
  bool uses_keys() const noexcept;
  // Returns the index of the input with this name in inputs(). Throws ShapeError when there is no
  // such input.
  std::size_t input_index(std::string_view input_name) const;
  // Returns the node of the first input. Networks for images have no other input.
  const Node& first_input() const;
  const Shape& input_shape() const { return first_input().shape; }  // [H, W, C] or [F]
  const LossOp& loss() const { return std::get<LossOp>(nodes.back().operation); }
  void set_label_smoothing(float amount) {
    std::get<LossOp>(nodes.back().operation).label_smoothing = amount;
  }
  // Returns the shape of the loss's input, the logits: [classes], [H, W, classes] or [K].
  const Shape& logits_shape() const;
  std::int64_t num_classes() const { return logits_shape().back(); }  // for a loss of numbers: K
  // Returns the shape of a sample's target: [] for a class, [H, W] for a class of every pixel, [K]
  // for numbers.
  Shape target_shape() const;
  // Returns whether the target is a label map, a class for every pixel.
  bool gives_maps() const { return has_classes(loss().kind) && !target_shape().empty(); }
  DType target_dtype() const { return has_classes(loss().kind) ? DType::kI32 : DType::kF32; }
  std::int64_t num_parameters() const;  // counts elements of all parameters
  ArenaLayout parameter_layout() const;
  ArenaLayout state_layout() const;
};

// Counts the multiply-adds of a node in a forward pass of one sample. Only convolutions, dense
// layers and products of matrices have any.
std::int64_t multiply_adds_of(const Graph& graph, const Node& node);

// Builds a graph node by node, and infers and checks shapes while nodes are added. Each function
// appends one node, returns its id and throws ShapeError when the input has an unsuitable shape.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name);

  // Adds an input, [H, W, C] or [F]. Called once per input, with different names.
  NodeId input(Shape sample_shape, InputOp operation, std::string_view name = "x");
  NodeId conv2d(NodeId x, std::string_view name, int out_channels, Conv2dOp operation);
  NodeId conv_transpose2d(NodeId x, std::string_view name, int out_channels,
                          ConvTranspose2dOp operation);
  NodeId batch_norm(NodeId x, std::string_view name, BatchNormOp operation = {});
  NodeId layer_norm(NodeId x, std::string_view name, LayerNormOp operation = {});
  NodeId dropout(NodeId x, std::string_view name, DropoutOp operation = {});
  NodeId relu(NodeId x);
  NodeId activation(NodeId x, Activation kind);
  NodeId leaky_relu(NodeId x, float slope = ActivationOp().slope);
  NodeId clip(NodeId x, float low, float high);
  NodeId linear(NodeId x, float factor, float offset = 0.0F);
  NodeId max_pool(NodeId x, MaxPoolOp operation = {});
  NodeId average_pool(NodeId x, AveragePoolOp operation = {});
  NodeId global_average_pool(NodeId x);
  NodeId flatten(NodeId x);
  // Adds a dense layer. init: the distribution of the weight's initial values; the bias starts at
  // zero.
  NodeId dense(NodeId x, std::string_view name, int out_features, Init init = Init::kGlorotUniform,
               DenseOp operation = {});
  NodeId add(NodeId a, NodeId b);
  NodeId multiply(NodeId a, NodeId b);
  NodeId concat(std::vector<NodeId> inputs);  // two or more inputs
  NodeId slice(NodeId x, int first, int count);
  NodeId shortcut(NodeId x, int stride, int out_channels);
  NodeId upsample2d(NodeId x, UpsampleOp operation = {});
  NodeId softmax(NodeId x);
  NodeId reshape(NodeId x, Shape shape);  // to [H, W, C] or [F]
  NodeId transpose(NodeId x, std::array<int, 3> order);
  NodeId reduce_mean(NodeId x, std::span<const int> axes);
  NodeId matmul(NodeId a, NodeId b);
  // Returns the shape of a node's output for one sample.
  const Shape& shape(NodeId node) const;
  // Returns the parameters of the nodes so far.
  std::span<const Parameter> parameters() const { return graph_.parameters; }
  // Adds the loss and moves the graph out of the builder, which must not be used afterwards.
  Graph finish(NodeId logits, LossOp operation = {});

 private:
  NodeId append(std::string_view name, Operation operation, std::vector<NodeId> inputs,
                Shape shape);
  // Adds the parameters of the last node: the weight and, unless `biases` is 0, a bias of `biases`
  // elements.
  void add_weights(std::string_view name, Parameter weight, std::int64_t biases);
  // If `x` is a flattened map, so that its elements have the order C, H, W in files but H, W, C in
  // memory, returns the sizes C, H, W of the map. Otherwise returns nullopt.
  std::optional<std::array<std::int64_t, 3>> flattened_map(NodeId x) const;
  // Returns the shape [H, W, C] of a map, which the operation `what` reads. Throws ShapeError if
  // `x` is not a map.
  Shape map_shape(NodeId x, std::string_view what) const;
  // Throws ShapeError if the elements of these inputs have different orders in files. is_joined:
  // the operation joins the inputs; then also throws if any input is a flattened map, because the
  // order of the joined elements in files is not defined.
  void require_one_order(std::span<const NodeId> inputs, bool is_joined,
                         std::string_view operation) const;

  Graph graph_;
};

// Sets the initial values of one parameter; `value` is [parameter.shape] f32 on the host. Each
// element is a function of (seed, parameter name, index in the file), so it does not depend on the
// rank, the layout in memory or the order of construction.
void fill_initial_value(const Parameter& parameter, std::uint64_t seed, const Tensor& value);
// Sets the initial values of all parameters of an arena; padding between parameters stays zero.
void fill_initial_values(const Graph& graph, std::uint64_t seed, ParameterArena& arena);
void fill_initial_state(const Graph& graph, StateBlock& state);

// Copy the elements of a parameter and change their order: from the order in memory to the order in
// files, or back. Both spans hold all elements of the parameter.
void memory_to_file_order(const Parameter& parameter, std::span<const float> memory,
                          std::span<float> file);
void file_to_memory_order(const Parameter& parameter, std::span<const float> file,
                          std::span<float> memory);

}  // namespace syncopate
