// Groups of nodes that are computed together. A backend turns each group into one forward and one
// backward function. Without fusion, every node is a group of its own.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// A main operation and the following operations that are computed together with it. The possible
// groups, with optional parts in parentheses:
//   input (+ flatten)
//   conv2d (+ relu); with `pool`: conv2d of the samples + relu + max_pool 2x2 (+ flatten)
//   conv_transpose2d (+ relu)
//   batch_norm (+ add) (+ relu)
//   dense (+ relu)
struct FusedGroup {
  NodeId main = 0;             // the node with the group's parameters
  std::vector<NodeId> inputs;  // values that the group reads; with `add`, inputs[1] is added
  NodeId output = 0;           // the group's last node, the only value that the group writes
  bool relu = false;
  bool add = false;
  bool pool = false;
  bool is_differentiated = true;  // whether the gradient of the output is computed
};

// Returns whether the group's main operation is an Op.
template <typename Op>
bool has_main(const Graph& graph, const FusedGroup& group) {
  return std::holds_alternative<Op>(graph.nodes[static_cast<std::size_t>(group.main)].operation);
}

// Divides the graph into fused groups, ordered such that every input is computed before it is read.
// A group reads only outputs of other groups, never a value inside another group.
// pools_first_layer: whether groups with FusedGroup::pool may be formed.
std::vector<FusedGroup> match_groups(const Graph& graph, bool fuse, bool pools_first_layer = true);

}  // namespace syncopate
