// Where a program of fused groups keeps its values, gradients and scratch: one block, planned by
// lifetimes over forward and backward, whatever the device and the layouts.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "models/graph/fused_groups.h"

namespace syncopate {

// What one group needs beside its inputs and its output, in bytes.
struct GroupNeeds {
  std::size_t saved = 0;             // from forward to backward
  std::size_t output_sums = 0;       // left beside the output, for its readers' forward
  std::size_t forward_scratch = 0;   // during forward
  std::size_t backward_scratch = 0;  // during backward
  bool input_in_backward = false;    // the first input's values
  bool output_in_backward = false;
  // The input whose gradient takes the memory of the output's first gradient; -1: none.
  int gradient_in_place = -1;
  bool takes_two_gradients = false;  // sums two gradients of its output by itself
};

// Offsets into the block, in bytes; none where there is nothing, or nobody wants it.
struct GroupPlacement {
  using Offset = std::optional<std::size_t>;
  Offset output;
  Offset output_sums;
  Offset input_sums;  // the output_sums of the first input's group
  Offset saved;
  Offset forward_scratch;
  Offset backward_scratch;
  std::vector<Offset> inputs;
  std::vector<Offset> input_gradients;
  std::vector<Offset> output_gradients;  // one, or two where the group takes them
  // Gradients of its output that come from further places: the second of each pair is added to the
  // first before the group's backward.
  std::vector<std::pair<std::size_t, std::size_t>> sums;
};

struct ProgramPlan {
  std::vector<GroupPlacement> groups;
  std::size_t total_bytes = 0;
  std::size_t logits = 0;  // of the block: what the loss reads; alive to the end
};

// groups[i] such that groups[i].output == value.
std::size_t producer_of(const std::vector<FusedGroup>& groups, NodeId value);
// Of group i's output: (group, which of its inputs).
std::vector<std::pair<std::size_t, std::size_t>> consumers_of(const std::vector<FusedGroup>& groups,
                                                              std::size_t i);
// Whether anybody wants the gradient of this value: samples have none.
bool has_gradient(const std::vector<FusedGroup>& groups, NodeId value);

// needs[i], value_bytes[i]: of group i and of its output. trains: with a backward. Throws
// ShapeError when a node's output is read by nobody.
ProgramPlan plan_program(const std::vector<FusedGroup>& groups,
                         const std::vector<GroupNeeds>& needs,
                         const std::vector<std::size_t>& value_bytes, bool trains);

}  // namespace syncopate
