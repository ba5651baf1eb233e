// The weights that the layers of an ONNX file get: which stored tensors they are, and whether the
// program that wrote the file trained them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deploy/onnx/onnx_graph.h"

namespace syncopate {

// One thread only. A layer has the name of its node in the graph. A tensor may be the kernel of one
// layer: a copy for each would be trained apart. Exporters store equal tensors once, so a bias or
// norm may be shared by chance; each layer gets a copy of it.
class OnnxLayerWeights {
 public:
  using Node = proto::onnx::NodeProto;

  struct Kernel {
    std::string layer;
    Shape shape;
  };
  struct Bias {
    std::vector<float> values;  // empty: the layer has none
    const Node* add = nullptr;  // the later Add that holds it; null: the layer's node does
  };
  struct Norm {
    std::string layer;
    std::vector<float> weight;
    std::vector<float> bias;
  };

  explicit OnnxLayerWeights(const OnnxGraph& graph) : graph_(graph) {}

  // Returns a name for a layer without a weight.
  std::string name_of(const Node& node) { return unique_name(node, ""); }
  // Return what a node reads as a kernel, bias or norm. They throw UsageError for a weight that is
  // no constant of `rank` sides, or that the program did not train.
  Kernel kernel(const Node& node, std::size_t rank);
  // index: of the node's input; without it the layer may have the bias of a later Add.
  Bias bias(const Node& node, int index, std::int64_t channels, const std::string& layer);
  Norm norm(const Node& node, std::int64_t size);
  // Returns a bias of zeros for a layer that has none in the file.
  std::vector<float> new_bias(const std::string& layer, std::int64_t size);
  // Reads a constant input of one side `size`; other sides must be 1.
  std::vector<float> list(const Node& node, int index, std::int64_t size) const;

  // Gives the graph's parameter or state `name` its values.
  void set(const std::string& name, std::vector<float> values);
  // Returns the values of a parameter or state of this shape.
  std::vector<float> take(const std::string& name, const Shape& shape);
  // Whether the Add holds the bias of a layer.
  bool is_bias(const Node& add) const { return biases_.contains(&add); }
  // Returns what the user must know of weights, a sentence each.
  std::vector<std::string> notes() const;

 private:
  struct LaterBias {
    const Node* add = nullptr;
    int input = 0;
  };
  // A layer that has the elements `first` to `end` of a tensor.
  struct WeightUser {
    std::string layer;
    std::int64_t first;
    std::int64_t end;
  };

  std::string unique_name(const Node& node, const std::string& weight);
  // Returns the name of the parameter that a node reads; "" for an input that is none.
  std::string parameter_name(const Node& node, int index) const;
  std::optional<LaterBias> later_bias(const Node& node, std::int64_t channels) const;
  // Notes that a layer has a constant input of a node. Throws UsageError if it is not trained, or
  // if another layer has it as its kernel.
  void note_user(const Node& node, int index, const std::string& layer);
  // Throws UsageError unless a constant input of a layer is a parameter of the program.
  void require_parameter(const Node& node, int index) const;
  // Reads a weight or bias of a norm, which may be the constant of a norm that trains none.
  std::vector<float> norm_list(const Node& node, int index, std::int64_t size,
                               const std::string& layer);

  const OnnxGraph& graph_;
  std::set<std::string> names_ = {"x"};                          // of nodes of the graph
  std::set<const Node*> biases_;                                 // the later Adds that hold one
  std::map<std::string, std::vector<WeightUser>> weight_users_;  // by tensor
  std::map<std::string, std::vector<float>> weights_;            // by the names of the graph
  std::vector<std::string> layers_with_new_bias_;
  std::vector<std::string> copied_lists_;    // layers with a list that another layer has, too
  std::vector<std::string> doubtful_norms_;  // their weight or bias may be a fixed constant
  std::vector<std::string> unclear_layers_;  // the exporter computed their weights
};

// Throws UsageError, naming the weight of a node, unless its shape is the expected one.
void require_shape(const proto::onnx::NodeProto& node, const Shape& expected, const Shape& found);
// Returns a number of the file as an int. Throws UsageError unless it is `least` to `most`.
int to_int(std::int64_t value, std::int64_t least, std::int64_t most, std::string_view what);

}  // namespace syncopate
