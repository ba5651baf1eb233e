// Groups of nodes that are computed together. A backend translates each group to one forward and
// one backward function. Without fusion, every node is a group of its own.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// A main operation and the operations behind it that are computed with it:
//   input (+ flatten)
//   conv2d (+ relu), or conv2d of the samples + relu + max_pool 2x2 (+ flatten): `pool`
//   conv_transpose2d (+ relu)
//   batch_norm (+ add) (+ relu)
//   dense (+ relu)
struct FusedGroup {
  NodeId main = 0;             // the node with the group's parameters
  std::vector<NodeId> inputs;  // values that the group reads; with `add`, the second is added
  NodeId output = 0;           // the value that the group writes: its last node
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
// A value that is read outside of its group is always the output of a group. pools_first_layer:
// allows groups with `pool`.
std::vector<FusedGroup> match_groups(const Graph& graph, bool fuse, bool pools_first_layer = true);

}  // namespace syncopate
