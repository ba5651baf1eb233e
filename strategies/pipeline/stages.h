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

// Cuts the network as the options say: behind the nodes `cut`, or, if it is empty, into stages of
// equal work. origin: what asks for `count` stages, such as "--stages 3" or "3 tasks". Messages
// begin with it. Throws UsageError as the two functions below, and for another number of stages.
std::vector<Stage> choose_stages(const Graph& whole, int count, std::span<const std::string> cut,
                                 const std::string& origin);

// Returns the origin of the stages of a training that has one task for each stage, or one task for
// all.
std::string origin_of_stages(int count, bool has_tasks);

// Cuts the network into `count` stages, each with a parameter, so that the largest number of
// multiply-adds of a stage is as small as possible. The network is cut behind a node only if later
// nodes read no other value than its output, and not inside a fused group. A pure function of its
// arguments. origin: of choose_stages(); "" stands for --stages. Throws UsageError when the network
// has too few such places, with the largest number of stages.
std::vector<Stage> cut_into_stages(const Graph& whole, int count, const std::string& origin = "");

// Cuts the network behind these nodes, such as "conv1". A name such as "layer1" stands for all
// nodes with names that begin with it: the cut is behind the last. Nodes without a name belong to
// the node before them. Throws UsageError for a name that is no place to cut, listing the places;
// for another order than the network's; for a stage without parameters.
std::vector<Stage> cut_behind(const Graph& whole, std::span<const std::string> names);

// Returns the whole names that cut_behind() takes (it also takes beginnings), in forward order.
std::vector<std::string> names_to_cut_behind(const Graph& graph);

// Returns the names of the last nodes of all stages but the last one, such as "conv1, conv2".
std::string describe_cut(std::span<const Stage> stages);

}  // namespace syncopate
