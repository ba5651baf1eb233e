// Cuts a network into the stages of a pipeline. A stage is itself a network. The input of every
// stage but the first is the output of the previous stage. The last stage ends with the loss, every
// other stage with its output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

struct Stage {
  Graph graph;
  // The stage's elements in the parameter arena of the whole network, [first_value, end_value), and
  // in the running statistics of the whole network, [first_state, end_state).
  std::int64_t first_value = 0;
  std::int64_t end_value = 0;
  std::int64_t first_state = 0;
  std::int64_t end_state = 0;
  std::int64_t multiply_adds = 0;  // of a forward pass of one sample
  // The stage's last node that has a name. (Nodes without a name may follow it in the stage.)
  std::string last_node;
};

// Cuts the network into `count` stages: behind the nodes `cut` or, if `cut` is empty, into stages
// of about equal work. `origin` says why there are `count` stages, such as "--stages 3" or "3
// tasks"; error messages begin with it. Throws the errors of cut_behind() and cut_into_stages().
// Throws UsageError if `cut` gives another number of stages.
std::vector<Stage> choose_stages(const Graph& whole, int count, std::span<const std::string> cut,
                                 const std::string& origin);

// Returns the `origin` of choose_stages(): "3 tasks" if the job has one task per stage, "--stages
// 3" if it has one task for all stages.
std::string origin_of_stages(int count, bool has_tasks);

// Cuts the network into `count` stages so that the largest stage has as few multiply-adds as
// possible. Every stage has a parameter. The network can be cut behind a node if later nodes read
// only this node's output and no earlier value, but not inside a group of nodes that a backend
// computes together (models/graph/fused_groups.h). Pure function. `origin`: see choose_stages(); ""
// stands for --stages. Throws UsageError if there are too few places to cut; the message has the
// largest possible number of stages.
std::vector<Stage> cut_into_stages(const Graph& whole, int count, const std::string& origin = "");

// Cuts the network behind these nodes, such as "conv1". A name such as "layer1" stands for all
// nodes with names that begin with "layer1"; the cut is behind the last of them. Nodes without a
// name belong to the node before them. Throws UsageError for a name behind which the network cannot
// be cut, with a list of the possible names. Throws UsageError if the names are not in the order of
// the network, or if a stage would have no parameters.
std::vector<Stage> cut_behind(const Graph& whole, std::span<const std::string> names);

// Returns the full names that cut_behind() accepts, in forward order. (cut_behind() also accepts
// beginnings of names.)
std::vector<std::string> names_to_cut_behind(const Graph& graph);

// Returns the names of the last nodes of all stages but the last one, such as "conv1, conv2".
std::string describe_cut(std::span<const Stage> stages);

// Bytes of one stage of a pipeline if each stage is a task, to plan jobs.
struct StageMemory {
  std::int64_t values = 0;  // values of the whole network, which every task holds
  // Gradients of the stage; doubled if the gradients of several micro-batches are summed.
  std::int64_t gradients = 0;
  // The optimizer slots of the stage. On the first stage: the slots of all stages, which the first
  // stage collects.
  std::int64_t slots = 0;
  std::int64_t activations = 0;  // node outputs of the micro-batches in flight
  std::int64_t handovers = 0;    // tensors to and from neighbouring stages
  std::int64_t all() const noexcept { return values + gradients + slots + activations + handovers; }
};

// Returns the memory of stage number `stage`. `samples` is the size of a micro-batch, `slots` the
// number of optimizer slots per parameter. `activations` is an upper limit: a backend that fuses
// operations keeps fewer node outputs. Pure function.
StageMemory memory_of_stage(std::span<const Stage> stages, int stage, int micro_batches,
                            std::int64_t samples, int slots);

}  // namespace syncopate
