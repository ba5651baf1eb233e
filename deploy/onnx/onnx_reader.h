// Turns the nodes of an ONNX file into those of a graph, one after the other. A class in eight
// files: onnx_reader.cc has the order of the nodes and what is said of those that have no
// counterpart, onnx_input.cc and onnx_output.cc the ends of the network, onnx_values.cc the inputs
// and outputs of nodes, onnx_layers.cc the operators with weights, onnx_shapes.cc those that change
// sides and axes, onnx_resize.cc those that enlarge maps, onnx_operators.cc the others.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deploy/onnx/onnx_attributes.h"
#include "deploy/onnx/onnx_constants.h"
#include "deploy/onnx/onnx_file.h"
#include "deploy/onnx/onnx_network.h"

namespace syncopate {

// The shape that a value has in the ONNX file. N is the number of samples.
enum class OnnxForm : std::uint8_t {
  kChannelsFirst,  // a map, [N, C, H, W]
  kChannelsLast,   // a map, [N, H, W, C]
  kPlane,          // a map of one channel, [N, H, W]
  kRows,           // a map of one row, [N, W, C]
  kColumns,        // a map of one row, [N, C, W]
  kVector,         // a vector, [N, F]
  kPixelFirst,     // a vector, [N, C, 1, 1]
  kPixelLast,      // a vector, [N, 1, 1, C]
};

// A value of the ONNX file and the node that computes it.
struct OnnxValue {
  NodeId node = 0;
  OnnxForm form = OnnxForm::kVector;
  // The sides H, W, C of the map that the vector was, if its elements have the order H, W, C in the
  // ONNX file, as in networks of Keras, and dense layers read it; empty otherwise.
  Shape channels_last{};
  // Whether the vector was a map whose elements have the order C, H, W in the ONNX file.
  bool was_channels_first = false;
  bool is_positive = false;  // no element is below 0: the output of an activation
  // What the file has done with the map before and the graph has not yet: how often each row was
  // repeated, and the zeros around it. The next node takes them over (pending_value()).
  int repeated_rows = 1;
  Padding pad{};

  bool is_pending() const { return repeated_rows != 1 || pad != 0; }
};

// One thread only.
class OnnxReader {
 public:
  OnnxReader(OnnxFile& file, std::string name);
  OnnxNetwork read();

 private:
  using Node = proto::onnx::NodeProto;
  struct Row {
    std::string_view op;
    int inputs;                                // at least
    std::vector<std::string_view> attributes;  // that are known
    // Refuses attributes that no operation has, whatever the shapes are; may be null.
    void (OnnxReader::*check)(const OnnxAttributes&) const;
    void (OnnxReader::*add)(const Node&, const OnnxAttributes&);
  };
  static std::span<const Row> rows();

  // onnx_reader.cc
  void find_values();
  std::vector<const Node*> sorted_nodes() const;
  void add(const Node& node);
  void add_known(const Node& node, const Row& row, const OnnxAttributes& attributes);
  // Whether a node computes on the shape of a value that is missing, because a node was refused.
  bool is_of_missing_shape(const Node& node) const;
  // Notes that a node has no counterpart; the nodes that read it are only checked for theirs.
  void refuse(const Node& node, const std::string& what);
  void add_missing(const std::string& op, const std::string& what, const std::string& node);
  void throw_missing() const;
  // Finds the nodes that attention consists of: a product, a softmax and a product, and what
  // computes their inputs.
  void find_attention(const std::vector<const Node*>& nodes);
  // Whether a node that is refused is one of attention. PyTorch writes it as dozens of nodes.
  bool is_of_attention(const Node& node) const;
  std::string name_of(const Node& node, const std::string& weight = "");
  // Returns the stored tensors that a node computes a constant from and that may be trained.
  std::vector<std::string> trained_inputs(const Node& node) const;

  // onnx_input.cc
  void add_input();
  OnnxForm form_of_input(const std::string& name, const Shape& shape);

  // onnx_output.cc
  void drop_last_activation();
  void drop_activation(const Node& node);
  // Throws UsageError unless the softmax that was dropped is over the channels of its input, which
  // are those of `last`.
  void check_dropped_softmax(const OnnxValue& last) const;
  void note_folded_batch_norms();
  OnnxNetwork finish();

  // onnx_values.cc
  const OnnxValue& value(const Node& node, int index) const;
  // Returns a value of which something may be pending.
  const OnnxValue& pending_value(const Node& node, int index) const;
  void set(const Node& node, OnnxValue result) { values_[node.output(0)] = std::move(result); }
  // Sets the result to one with the form of an input.
  void set_like(const Node& node, const OnnxValue& from, NodeId id);
  // Keeps the weights of a convolution of `x`, whose layer is `id`, and sets its output. bias:
  // empty if there is none.
  void set_kernel(const Node& node, const std::string& name, const OnnxValue& x, NodeId id,
                  std::vector<float> bias, std::int64_t channels);
  static bool has_input(const Node& node, int index);
  bool is_value(const Node& node, int index) const;
  const OnnxConstant* constant(const Node& node, int index) const;
  // Returns the shape in the ONNX file, with batch_ in front.
  Shape shape_of(const OnnxValue& value) const;
  std::string shown_shape(const OnnxValue& value) const;  // such as "[N, 3, 32, 32]"
  // Returns the axis in the ONNX file that is the last one in memory; none for a plane.
  static std::optional<std::int64_t> channel_axis(OnnxForm form);
  const Shape& map_of(const OnnxValue& value) const { return build_.shape(value.node); }
  // Returns the only node that reads the first output of a node; null if there are others.
  const Node* only_reader(const Node& node) const;
  // Returns the index 0 to rank - 1 of an axis that may count from the end.
  static std::int64_t axis_of(std::int64_t axis, std::size_t rank);

  // onnx_shapes.cc
  // Returns the value with its elements in memory in the order of the ONNX file: kVector, kRows or
  // kChannelsLast.
  OnnxValue in_order(const OnnxValue& x);
  // Returns the value as a map [N, C, H, W] of the file, kChannelsFirst, for the operators that
  // take those. Throws UsageError for one that is none.
  OnnxValue as_map(const OnnxValue& x);
  // Returns the value with an axis of the ONNX file last in memory. Throws UsageError for other
  // axes than 1 and the last.
  OnnxValue with_channels(const OnnxValue& x, std::int64_t axis);
  OnnxValue with_shape(const OnnxValue& x, Shape shape, OnnxForm form);
  void add_flatten(const Node& node, const OnnxAttributes& attributes);
  void add_reshape(const Node& node, const OnnxAttributes& attributes);
  void add_squeeze(const Node& node, const OnnxAttributes& attributes);
  void add_unsqueeze(const Node& node, const OnnxAttributes& attributes);
  void add_transpose(const Node& node, const OnnxAttributes& attributes);
  OnnxValue transposed(const OnnxValue& x, const std::vector<std::int64_t>& order);
  OnnxValue reshaped(const Node& node, const OnnxValue& x, Shape target);
  OnnxValue flattened(const Node& node, const OnnxValue& x);
  // Whether only dense layers read the output of a node, at most behind operators that work on each
  // element.
  bool is_read_by_dense_layers(const Node& node) const;
  // Takes channels `first` to `end` of an axis that counts channels, as one output of the node.
  void add_channels(const Node& node, int output, const OnnxValue& x, std::int64_t axis,
                    std::int64_t first, std::int64_t end);
  void add_slice(const Node& node, const OnnxAttributes& attributes);
  void add_split(const Node& node, const OnnxAttributes& attributes);
  void add_part(const Node& node, const OnnxAttributes& attributes);
  void add_softmax(const Node& node, const OnnxAttributes& attributes);
  void add_reduce_mean(const Node& node, const OnnxAttributes& attributes);

  // onnx_resize.cc
  void check_resize(const OnnxAttributes& attributes) const;
  void add_resize(const Node& node, const OnnxAttributes& attributes);
  void add_repeat(const Node& node, const OnnxAttributes& attributes);
  void add_pad(const Node& node, const OnnxAttributes& attributes);
  // Returns how often Resize repeats or divides each side of x, all sides with N.
  std::vector<double> scales_of(const Node& node, const OnnxValue& x,
                                const OnnxAttributes& attributes) const;
  OnnxValue upsampled(const OnnxValue& x, std::int64_t scale, Interpolation mode);

  // onnx_layers.cc
  void check_conv(const OnnxAttributes& attributes) const;
  void add_conv(const Node& node, const OnnxAttributes& attributes);
  void check_conv_transpose(const OnnxAttributes& attributes) const;
  void add_conv_transpose(const Node& node, const OnnxAttributes& attributes);
  void check_batch_norm(const OnnxAttributes& attributes) const;
  void add_batch_norm(const Node& node, const OnnxAttributes& attributes);
  void add_layer_norm(const Node& node, const OnnxAttributes& attributes);
  void check_gemm(const OnnxAttributes& attributes) const;
  void add_gemm(const Node& node, const OnnxAttributes& attributes);
  void add_matmul(const Node& node, const OnnxAttributes& attributes);
  void add_product_of_values(const Node& node);
  void add_dense(const Node& node, bool is_transposed);
  void add_dropout(const Node& node, const OnnxAttributes& attributes);
  // A bias that a later Add holds, and that Add.
  struct LaterBias {
    const Node* add = nullptr;
    int input = 0;
  };
  std::optional<LaterBias> later_bias(const Node& node, std::int64_t channels) const;
  // Notes that a layer has a constant input of a node. Throws UsageError if it is not trained, or
  // if another layer has it as its kernel: a copy for each would be trained apart. Exporters store
  // equal tensors once, so a bias or norm may be shared by chance; each layer gets a copy of it.
  void take(const Node& node, int index, const std::string& layer);
  // Throws UsageError unless a constant input of a layer is a parameter of the program.
  void require_parameter(const Node& node, int index) const;
  // Takes a weight or bias of a norm, which may be the constant of a norm that trains none.
  void take_norm(const Node& node, int index, const std::string& layer,
                 const std::vector<float>& values);
  [[noreturn]] static void refuse_untrained_norm(int index);
  // Throws UsageError if a number that a node reads may be trained. Notes a number of which the
  // file does not show it.
  void require_fixed(const Node& node, int index);
  // Returns the name of the parameter that a node reads; "" for an input that is none.
  std::string parameter_name(const Node& node, int index) const;
  // Returns the weight and bias of a norm over `size` channels, whose layer is `name`.
  std::pair<std::vector<float>, std::vector<float>> norm_weights(const Node& node,
                                                                 const std::string& name,
                                                                 std::int64_t size);
  std::string kernel_weight(const Node& node, std::size_t rank, Shape& shape);
  // Reads the bias of a layer from an input of the node or from a later Add; empty without one.
  std::vector<float> bias_of(const Node& node, int index, std::int64_t channels,
                             const std::string& layer);
  // Reads `size` values of a constant input whose other sides are 1.
  std::vector<float> list_of(const Node& node, int index, std::int64_t size) const;
  void require_shape(const Node& node, const Shape& expected, const Shape& found) const;

  // onnx_operators.cc
  void check_window(const OnnxAttributes& attributes) const;
  void check_gelu(const OnnxAttributes& attributes) const;
  void check_swish(const OnnxAttributes& attributes) const;
  void add_max_pool(const Node& node, const OnnxAttributes& attributes);
  void add_average_pool(const Node& node, const OnnxAttributes& attributes);
  void add_global_pool(const Node& node, const OnnxAttributes& attributes);
  void add_relu(const Node& node, const OnnxAttributes& attributes);
  void add_activation(const Node& node, const OnnxAttributes& attributes);
  void add_clip(const Node& node, const OnnxAttributes& attributes);
  void add_identity(const Node& node, const OnnxAttributes& attributes);
  void add_hard_sigmoid(const Node& node, const OnnxAttributes& attributes);
  // Adds the sum, difference, product or quotient of a value and a number, or of two values.
  void add_arithmetic(const Node& node, const OnnxAttributes& attributes);
  void add_number(const Node& node, const OnnxValue& x, double number, bool is_first);
  OnnxValue combined(const OnnxValue& a, const OnnxValue& b, bool is_sum);
  void add_concat(const Node& node, const OnnxAttributes& attributes);
  // Returns the window's size, stride and padding of a pool.
  MaxPoolOp window_of(const Node& node, const OnnxValue& x, const OnnxAttributes& attributes) const;

  OnnxFile& file_;
  OnnxConstants constants_;
  GraphBuilder build_;
  std::int64_t batch_ = -1;  // the fixed number of samples; -1 if it is not fixed
  std::string input_shape_;
  std::string output_;
  LossKind loss_ = LossKind::kSoftmaxCrossEntropy;
  const Node* dropped_softmax_ = nullptr;
  std::int64_t dropped_axis_ = -1;
  std::map<std::string, const Node*, std::less<>> writers_;               // by value
  std::map<std::string, std::vector<const Node*>, std::less<>> readers_;  // by value
  std::map<std::string, OnnxValue, std::less<>> values_;
  std::set<const Node*> joined_;             // nodes that another node's layer contains
  std::set<std::string> shapes_of_missing_;  // values that is_of_missing_shape() found
  std::set<std::string> names_;              // of nodes of the graph
  // A layer that has the elements `first` to `end` of a tensor.
  struct WeightUser {
    std::string layer;
    std::int64_t first;
    std::int64_t end;
  };
  std::map<std::string, std::vector<WeightUser>> weight_users_;  // by tensor
  std::map<std::string, std::vector<float>> weights_;            // by the names of the graph
  struct Missing {
    std::string op;
    std::string what;  // why it is refused, with a space in front
    std::vector<std::string> nodes;
  };
  std::vector<Missing> missing_;
  std::set<const Node*> attention_;
  std::set<std::string> random_values_;  // of random layers, which are refused
  bool has_unchecked_ = false;           // a node reads the output of one that was refused
  std::vector<std::string> notes_;
  std::vector<std::string> layers_with_new_bias_;
  std::vector<std::string> copied_lists_;    // layers with a list that another layer has, too
  std::vector<std::string> doubtful_norms_;  // whose weight or bias may be a fixed constant
  std::vector<std::string> unclear_layers_;  // whose weights the exporter computed
};

// The padding of a convolution or a pool. Throws UsageError for a kind that is not known.
Padding onnx_padding(const OnnxAttributes& attributes, const Shape& map,
                     std::span<const std::int64_t> kernel, std::int64_t stride);
// Returns the only number of a list of two, such as the strides; `otherwise` for an absent list.
// Throws UsageError unless both are equal and 1 to 127.
int one_size(const OnnxAttributes& attributes, std::string_view name, int otherwise);
// Throws UsageError unless the dilations are 1.
void refuse_dilation(const OnnxAttributes& attributes);
// Whether HardSigmoid has the slope 1/6 and the offset 1/2 of PyTorch.
bool is_hard_sigmoid(const OnnxAttributes& attributes);
// Replaces SplitToSequence and SequenceAt, as PyTorch writes chunk(), by nodes Part with the
// attributes axis, index and size.
void join_parts(OnnxFile& file);
// Replaces Unsqueeze, Tile and Reshape that repeat rows or columns, as Keras enlarges maps, by a
// node Repeat with the attributes axis and count.
void join_repeats(OnnxFile& file);
// Replaces several nodes that are one activation, such as x * Sigmoid(x), by one node.
void join_activations(OnnxFile& file);

}  // namespace syncopate
