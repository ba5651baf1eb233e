// Groups of nodes that are computed together. A backend translates each group to one forward and
// one backward function. Without fusion, every node is a group of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

enum class GroupKind : std::uint8_t {
  kInput,          // the samples (+ flatten)
  kConv,           // conv2d (+ relu)
  kConvTranspose,  // conv_transpose2d (+ relu)
  kConvReluPool,   // conv2d of the samples + relu + max_pool 2x2 (+ flatten)
  kBatchNorm,      // batch_norm (+ add) (+ relu)
  kLayerNorm,
  kDropout,
  kRelu,
  kActivation,
  kAdd,
  kMultiply,
  kConcat,
  kSlice,
  kUpsample,
  kSoftmax,
  kReshape,
  kTranspose,
  kReduceMean,
  kMatmul,
  kMaxPool,
  kAveragePool,
  kGlobalAveragePool,
  kFlatten,
  kDense,  // dense (+ relu)
  kShortcut,
  kLoss,
};

struct FusedGroup {
  GroupKind kind = GroupKind::kInput;
  NodeId main = 0;             // the node with the group's parameters
  std::vector<NodeId> inputs;  // values that the group reads; with `add`, the second is added
  NodeId output = 0;           // the value that the group writes: its last node
  bool relu = false;
  bool add = false;
  bool is_differentiated = true;  // whether the gradient of the output is computed
};

// Divides the graph into fused groups, ordered such that every input is computed before it is read.
// A value that is read outside of its group is always the output of a group. pools_first_layer:
// allows groups of kind kConvReluPool.
std::vector<FusedGroup> match_groups(const Graph& graph, bool fuse, bool pools_first_layer = true);

}  // namespace syncopate
