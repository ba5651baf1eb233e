// Which nodes are computed together. A group is the unit that a backend lowers: its forward, its
// backward and what it saves between them. Without fusion every node is a group of its own (the
// plain lowering).
#pragma once

#include <cstdint>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

enum class GroupKind : std::uint8_t {
  kInput,         // input (+ flatten)
  kConv,          // conv2d (+ relu)
  kConvReluPool,  // conv2d on the samples + relu + max_pool 2x2 (+ flatten)
  kBatchNorm,     // batch_norm (+ add) (+ relu)
  kRelu,
  kAdd,
  kMaxPool,
  kGlobalAveragePool,
  kFlatten,
  kDense,  // dense (+ relu)
  kShortcut,
  kLoss,
};

struct FusedGroup {
  GroupKind kind = GroupKind::kInput;
  NodeId main = 0;             // the node whose parameters and attributes it has
  std::vector<NodeId> inputs;  // values read; with `add`, the second is the one added
  NodeId output = 0;           // the value written: the last node of the group
  bool relu = false;
  bool add = false;
};

// In an order in which every input is computed before it is read. A value that somebody outside the
// group reads is never fused away.
// pools_first_layer: kConvReluPool is one of the groups.
std::vector<FusedGroup> match_groups(const Graph& graph, bool fuse, bool pools_first_layer = true);

}  // namespace syncopate
