// Plans that a backend makes once per compiled graph: the memory of all values, gradients and
// scratch of its fused groups, and the groups at which each bucket is needed and completed. The
// plans do not depend on the device.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "models/graph/fused_groups.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate {

// A buffer that is in use from step `first` to step `last` of a program, both included.
struct BufferLifetime {
  std::size_t size_bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // of each buffer, in bytes, aligned to kAlignmentBytes
  std::size_t total_bytes = 0;
};

// Places buffers in one block of memory such that buffers in use at the same step never overlap.
// The algorithm is greedy: it places the largest buffer first, and each buffer at the lowest offset
// that is free for the buffer's whole lifetime. Source: Pisarchyk and Lee 2020, "Efficient memory
// management for deep neural net inference".
MemoryPlan plan_memory(const std::vector<BufferLifetime>& buffers);

// What a group needs besides its inputs and its output: memory in bytes, and the values that the
// backward pass reads.
struct GroupNeeds {
  std::size_t saved = 0;  // written by the forward pass, read by the backward pass
  // Bytes of the sums that the forward pass computes for a batch norm that reads the output.
  std::size_t output_sums = 0;
  std::size_t forward_scratch = 0;   // used during the forward pass only
  std::size_t backward_scratch = 0;  // used during the backward pass only
  int inputs_in_backward = 0;        // the backward pass reads this many inputs, from the first on
  bool output_in_backward = false;   // the backward pass reads the output
  // If not -1: the gradient of the input with this index overwrites the first gradient of the
  // group's output, in the same memory.
  int gradient_in_place = -1;
  bool takes_two_gradients = false;  // the backward pass itself adds two gradients of the output
};

// Offsets of a group's memory in the program's block, in bytes. An offset is nullopt for memory
// that the group does not need, or for a gradient that is not computed.
struct GroupPlacement {
  using Offset = std::optional<std::size_t>;
  Offset output;
  Offset output_sums;
  Offset input_sums;  // the output_sums of the group that computes the first input
  Offset saved;
  Offset forward_scratch;
  Offset backward_scratch;
  std::vector<Offset> inputs;
  std::vector<Offset> input_gradients;
  std::vector<Offset> output_gradients;  // one gradient, or two if the group takes two
  // Pairs of gradients of the group's output, as offsets; each reader of the output computes one
  // gradient. Before the group's backward pass, the backend adds the second gradient of each pair
  // to the first.
  std::vector<std::pair<std::size_t, std::size_t>> sums;
};

struct ProgramPlan {
  std::vector<GroupPlacement> groups;
  std::size_t total_bytes = 0;
  // The offset of the input of the loss. The memory at this offset is not reused before the program
  // ends.
  std::size_t logits = 0;
};

// Returns the index of the group that outputs `value`.
std::size_t producer_of(const std::vector<FusedGroup>& groups, NodeId value);
// Returns the readers of group i's output, as pairs (group, index of the input in that group).
std::vector<std::pair<std::size_t, std::size_t>> consumers_of(const std::vector<FusedGroup>& groups,
                                                              std::size_t i);
// Returns whether the gradient of this value is computed. Returns false for the samples.
bool has_gradient(const std::vector<FusedGroup>& groups, NodeId value);

// Places the memory of a program. needs[i] are the needs of group i, and value_bytes[i] is the size
// of its output. trains: whether the program has a backward pass. Throws ShapeError when a node's
// output has no reader.
ProgramPlan plan_program(const std::vector<FusedGroup>& groups,
                         const std::vector<GroupNeeds>& needs,
                         const std::vector<std::size_t>& value_bytes, bool trains);

struct BucketSchedule {
  // For each group: the buckets with values that no earlier group uses, in the order of use.
  std::vector<std::vector<BucketId>> first_used_by;
  // For each group: the buckets that are complete after this group's backward pass.
  std::vector<std::vector<BucketId>> completed_by;
};

// Finds the groups at which buckets are first used and completed. Buckets are reported complete in
// the order of their numbers, even if a branch of the network is computed in another order than its
// parameters have in the arena.
BucketSchedule schedule_buckets(const Graph& graph, const std::vector<FusedGroup>& groups,
                                const ArenaLayout& layout, const std::vector<Bucket>& buckets);

}  // namespace syncopate
