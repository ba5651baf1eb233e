#include "models/graph/fused_groups.h"

#include <algorithm>

namespace syncopate {
namespace {

// Forms fused groups from the nodes of a graph, in the order of the nodes.
class Matcher {
 public:
  Matcher(const Graph& graph, bool fuse, bool pools_first_layer)
      : graph_(graph),
        fuse_(fuse),
        pools_first_layer_(pools_first_layer),
        consumers_(graph.nodes.size()),
        absorbed_(graph.nodes.size()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const NodeId input : graph.nodes[i].inputs) {
        consumers_[static_cast<std::size_t>(input)].push_back(static_cast<NodeId>(i));
      }
    }
  }

  std::vector<FusedGroup> match() {
    std::vector<FusedGroup> groups;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!absorbed_[i]) groups.push_back(start_group(static_cast<NodeId>(i)));
    }
    // A group's inputs have lower numbers than its output, so an order by output is topological.
    std::ranges::sort(groups, {}, &FusedGroup::output);
    return groups;
  }

 private:
  const Node& node(NodeId id) const { return graph_.nodes[static_cast<std::size_t>(id)]; }

  template <typename Op>
  bool is(NodeId id) const {
    return std::holds_alternative<Op>(node(id).operation);
  }

  // Returns the only consumer of node `id` if it is an Op outside all groups, and -1 otherwise.
  template <typename Op>
  NodeId sole_consumer(NodeId id) const {
    const std::vector<NodeId>& consumers = consumers_[static_cast<std::size_t>(id)];
    if (!fuse_ || consumers.size() != 1) return -1;
    const NodeId consumer = consumers.front();
    return is<Op>(consumer) && !absorbed_[static_cast<std::size_t>(consumer)] ? consumer : -1;
  }

  // Extends the group by its output's only consumer if that is an Op. Returns whether it did so.
  template <typename Op>
  bool absorb(FusedGroup& group) {
    const NodeId next = sole_consumer<Op>(group.output);
    if (next < 0) return false;
    absorbed_[static_cast<std::size_t>(next)] = true;
    group.output = next;
    return true;
  }

  // Returns whether a convolution is the first one of a network for small images, with at most 3
  // input channels and 2x2 pooling. Only there a kernel that also pools is faster: few input
  // channels, and no gradient of the input to compute. The kernel reads the samples in an order
  // that other groups do not read, so it must be their only reader.
  bool pools_first_layer(const FusedGroup& group) const {
    const Conv2dOp& conv = std::get<Conv2dOp>(node(group.main).operation);
    const NodeId pool = sole_consumer<MaxPoolOp>(group.output);
    if (pool < 0 || !group.relu || !conv.bias || conv.stride != 1 || conv.pad != 0) return false;
    if (conv.groups != 1) return false;
    const auto* samples = std::get_if<InputOp>(&node(group.inputs[0]).operation);
    if (samples == nullptr || samples->is_differentiated) return false;
    if (node(group.inputs[0]).shape.at(2) > 3) return false;
    if (consumers_[static_cast<std::size_t>(group.inputs[0])].size() != 1) return false;
    if (conv.kernel_h != 3 || conv.kernel_w != 3) return false;
    const MaxPoolOp& op = std::get<MaxPoolOp>(node(pool).operation);
    return op.window == 2 && op.stride == 2 && op.pad == 0;
  }

  FusedGroup start_group(NodeId id) {
    FusedGroup group;
    group.main = id;
    group.output = id;
    group.inputs = node(id).inputs;
    if (is<InputOp>(id)) {
      group.is_differentiated = std::get<InputOp>(node(id).operation).is_differentiated;
      absorb<FlattenOp>(group);
    } else if (is<Conv2dOp>(id)) {
      group.relu = absorb<ReluOp>(group);
      group.pool = pools_first_layer_ && pools_first_layer(group);
      if (group.pool) {
        absorb<MaxPoolOp>(group);
        absorb<FlattenOp>(group);
      }
    } else if (is<ConvTranspose2dOp>(id)) {
      group.relu = absorb<ReluOp>(group);
    } else if (is<BatchNormOp>(id)) {
      const NodeId normalised = group.output;
      if (absorb<AddOp>(group)) {
        const std::vector<NodeId>& terms = node(group.output).inputs;
        group.add = true;
        group.inputs.push_back(terms[0] == normalised ? terms[1] : terms[0]);
      }
      group.relu = absorb<ReluOp>(group);
    } else if (is<DenseOp>(id)) {
      // The kernel that adds the bias applies ReLU, too.
      group.relu = std::get<DenseOp>(node(id).operation).bias && absorb<ReluOp>(group);
    }
    return group;
  }

  const Graph& graph_;
  bool fuse_;
  bool pools_first_layer_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<bool> absorbed_;
};

}  // namespace

std::vector<FusedGroup> match_groups(const Graph& graph, bool fuse, bool pools_first_layer) {
  return Matcher(graph, fuse, pools_first_layer).match();
}

}  // namespace syncopate
