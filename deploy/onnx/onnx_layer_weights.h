// Finds the weights of the layers of an ONNX file among the stored tensors, and checks that the
// program that wrote the file trained them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deploy/onnx/onnx_graph.h"

namespace syncopate {

// Finds and holds the weights of all layers. A layer is identified by the name of its node in the
// graph. A tensor may be the kernel of only one layer, because copies for several layers would be
// trained separately. Several layers may use one tensor as their bias or norm, because exporters
// store equal tensors once; each layer gets a copy. One thread only.
class OnnxLayerWeights {
 public:
  using Node = proto::onnx::NodeProto;

  struct Kernel {
    std::string layer;
    Shape shape;
  };
  struct Bias {
    std::vector<float> values;  // empty if the layer has no bias
    // The Add node behind the layer that adds the bias; null if the bias is an input of the layer's
    // node.
    const Node* add = nullptr;
  };
  struct Norm {
    std::string layer;
    std::vector<float> weight;
    std::vector<float> bias;
  };

  explicit OnnxLayerWeights(const OnnxGraph& graph) : graph_(graph) {}

  // Returns a unique name for a layer that has no weight.
  std::string name_of(const Node& node) { return unique_name(node, ""); }
  // These functions return the kernel, the bias or the norm that a node reads. They throw
  // UsageError if a weight is not constant, has another number of sides or another size, or was not
  // trained by the program that wrote the file.
  Kernel kernel(const Node& node, std::size_t rank);
  // index: the index of the node's input that is the bias. If the node does not have this input,
  // the function looks for the bias in an Add node that reads the layer's output.
  Bias bias(const Node& node, int index, std::int64_t channels, const std::string& layer);
  Norm norm(const Node& node, std::int64_t size);
  // Returns a bias of zeros for a layer that has none in the file.
  std::vector<float> new_bias(const std::string& layer, std::int64_t size);
  // Reads a constant input of `size` floats. Throws UsageError if the input is not constant, or if
  // its shape is not [size] after sides of 1 are removed.
  std::vector<float> list(const Node& node, int index, std::int64_t size) const;

  // Stores the values of the graph's parameter or state `name`.
  void set(const std::string& name, std::vector<float> values);
  // Returns the values that set() stored, for a parameter or state of this shape, and removes them.
  std::vector<float> take(const std::string& name, const Shape& shape);
  // Whether bias() found the bias of a layer in this Add node.
  bool is_bias(const Node& add) const { return biases_.contains(&add); }
  // Returns notes about weights for the user, one sentence each.
  std::vector<std::string> notes() const;

 private:
  struct LaterBias {
    const Node* add = nullptr;
    int input = 0;
  };
  // A layer that uses the elements [first, end) of a tensor.
  struct WeightUser {
    std::string layer;
    std::int64_t first;
    std::int64_t end;
  };

  std::string unique_name(const Node& node, const std::string& weight);
  // Returns the name of the parameter that a node reads at input `index`; "" if the input is not a
  // parameter.
  std::string parameter_name(const Node& node, int index) const;
  std::optional<LaterBias> later_bias(const Node& node, std::int64_t channels) const;
  // Records that a layer uses a constant input of a node. Throws UsageError if the constant is not
  // trained, or if it is a kernel that another layer uses.
  void note_user(const Node& node, int index, const std::string& layer);
  // Throws UsageError unless a constant input of a layer is a parameter of the program that wrote
  // the file.
  void require_parameter(const Node& node, int index) const;
  // Reads the weight or the bias of a norm. A norm without a trained weight or bias has a constant
  // of ones or zeros in its place. Throws UsageError if the values are such a constant. Adds the
  // layer to doubtful_norms_ if the file does not show whether they are a constant.
  std::vector<float> norm_list(const Node& node, int index, std::int64_t size,
                               const std::string& layer);

  const OnnxGraph& graph_;
  std::set<std::string> names_ = {"x"};  // names that nodes of the graph already have
  std::set<const Node*> biases_;         // the Adds that have the bias of a layer
  std::map<std::string, std::vector<WeightUser>> weight_users_;  // by name of the tensor
  // The values that set() stored, by name of the parameter or state in the graph.
  std::map<std::string, std::vector<float>> weights_;
  std::vector<std::string> layers_with_new_bias_;
  // Layers that got a copy of a bias or norm that another layer also uses.
  std::vector<std::string> copied_lists_;
  // Norm layers with a weight or bias that may be a constant, which the layer did not train.
  std::vector<std::string> doubtful_norms_;
  std::vector<std::string> unclear_layers_;  // layers with weights that the exporter computed
};

// Throws UsageError naming the weight of a node unless its shape `found` is `expected`.
void require_shape(const proto::onnx::NodeProto& node, const Shape& expected, const Shape& found);
// Converts `value`, a number in the ONNX file, to int. Throws UsageError naming `what` unless the
// number is from `least` to `most`.
int to_int(std::int64_t value, std::int64_t least, std::int64_t most, std::string_view what);

// Returns the name for a layer, such as "layer1.0.conv1". weight: the name of the layer's weight,
// such as "layer1.0.conv1.weight"; the layer's name is made from it. If `weight` has another
// form, the layer's name is made from `node`, such as "/layer1/layer1.0/conv1/Conv". If the node
// has no name, the layer's name is `op` in lower case. Characters that a network file does not
// allow are replaced.
std::string layer_name(std::string_view node, std::string_view weight, std::string_view op);

}  // namespace syncopate
