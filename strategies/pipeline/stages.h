// Cuts a network into the stages of a pipeline. A stage is a network of its own: it begins with an
// input that is the output of the stage before, and ends with the loss, or with its output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

struct Stage {
  Graph graph;
  // The stage's elements of the whole network's arena, and of its state.
  std::int64_t first_value = 0;
  std::int64_t end_value = 0;
  std::int64_t first_state = 0;
  std::int64_t end_state = 0;
  std::int64_t multiply_adds = 0;  // of a forward pass of one sample
  // The last node that has a name: the stage ends behind it and the nodes without names after it.
  std::string last_node;
};

// Cuts the network into `count` stages, each with a parameter, so that the largest number of
// multiply-adds of a stage is as small as possible. The network is cut behind nodes whose output is
// the only value that later nodes read, and not inside a fused group. A pure function of its
// arguments. Throws UsageError when the network has too few such places.
std::vector<Stage> cut_into_stages(const Graph& whole, int count);

// Cuts the network behind these nodes, such as "conv1", or behind all nodes whose names begin
// alike, such as "layer1". Nodes without a name belong to the node before them. Throws UsageError
// for a name that is no place to cut, listing the places; for another order than the network's; for
// a stage without parameters.
std::vector<Stage> cut_behind(const Graph& whole, std::span<const std::string> names);

// Returns the names of the nodes behind which the stages end, but for the last, "conv1, conv2".
std::string describe_cut(std::span<const Stage> stages);

}  // namespace syncopate
