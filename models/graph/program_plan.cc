#include "models/graph/program_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/base/errors.h"
#include "models/tensor/buffer.h"

namespace syncopate {
namespace {

// Numbers the buffers of a program and collects their lifetimes; bind() translates the numbers to
// offsets after plan_memory() has placed all buffers.
class Planner {
 public:
  Planner(const std::vector<FusedGroup>& groups, const std::vector<GroupNeeds>& needs,
          const std::vector<std::size_t>& value_bytes, bool trains)
      : groups_(groups),
        needs_(needs),
        value_bytes_(value_bytes),
        trains_(trains),
        buffers_(groups.size()) {}

  ProgramPlan plan() {
    for (std::size_t i = 0; i < groups_.size(); ++i) place_group(i);
    // Groups are visited in backward order, so that the memory of a gradient is known before
    // another gradient takes it over in place.
    for (std::size_t i = groups_.size(); i-- > 0;) place_gradients(i);
    const MemoryPlan memory = plan_memory(lifetimes_);
    ProgramPlan plan;
    plan.total_bytes = memory.total_bytes;
    for (std::size_t i = 0; i < groups_.size(); ++i) plan.groups.push_back(bind(i, memory));
    const std::size_t logits = producer_of(groups_, groups_.back().inputs[0]);
    plan.logits = plan.groups[logits].output.value_or(0);
    return plan;
  }

 private:
  using BufferId = int;
  static constexpr BufferId kNone = -1;

  struct Buffers {
    BufferId output = kNone;
    BufferId output_sums = kNone;
    BufferId saved = kNone;
    BufferId forward_scratch = kNone;
    BufferId backward_scratch = kNone;
    std::vector<BufferId> input_gradients;
  };

  bool is_loss(std::size_t i) const { return i + 1 == groups_.size(); }  // the last group
  int forward_time(std::size_t i) const { return static_cast<int>(i); }
  int backward_time(std::size_t i) const { return static_cast<int>(2 * groups_.size() - i); }
  int end_time() const { return static_cast<int>(2 * groups_.size()) + 1; }

  BufferId add_buffer(std::size_t size_bytes, int first, int last) {
    if (size_bytes == 0) return kNone;
    lifetimes_.push_back({size_bytes, first, last});
    return static_cast<BufferId>(lifetimes_.size()) - 1;
  }

  void place_group(std::size_t i) {
    Buffers& buffers = buffers_[i];
    const GroupNeeds& needs = needs_[i];
    if (!is_loss(i)) {
      int last = forward_time(i);
      int last_read = last;
      for (const auto& [c, k] : consumers_of(groups_, i)) {
        last_read = std::max(last_read, forward_time(c));
        last = std::max(last, forward_time(c));
        if (static_cast<int>(k) < needs_[c].inputs_in_backward)
          last = std::max(last, backward_time(c));
        if (is_loss(c)) last = end_time();
      }
      if (needs.output_in_backward) last = std::max(last, backward_time(i));
      buffers.output = add_buffer(value_bytes_[i], forward_time(i), last);
      buffers.output_sums = add_buffer(needs.output_sums, forward_time(i), last_read);
    }
    buffers.saved = add_buffer(needs.saved, forward_time(i), backward_time(i));
    buffers.forward_scratch = add_buffer(needs.forward_scratch, forward_time(i), forward_time(i));
    buffers.backward_scratch =
        add_buffer(needs.backward_scratch, backward_time(i), backward_time(i));
  }

  void place_gradients(std::size_t i) {
    const int in_place = needs_[i].gradient_in_place;
    for (std::size_t k = 0; k < groups_[i].inputs.size(); ++k) {
      BufferId gradient = kNone;
      if (trains_ && has_gradient(groups_, groups_[i].inputs[k])) {
        const std::size_t producer = producer_of(groups_, groups_[i].inputs[k]);
        const BufferId shared = static_cast<int>(k) == in_place ? first_gradient_of(i) : kNone;
        if (shared == kNone) {
          gradient = add_buffer(value_bytes_[producer], backward_time(i), backward_time(producer));
        } else {
          gradient = shared;
          lifetimes_[static_cast<std::size_t>(shared)].last = backward_time(producer);
        }
      }
      buffers_[i].input_gradients.push_back(gradient);
    }
  }

  // Returns the gradient of group i's output that its first consumer writes.
  BufferId first_gradient_of(std::size_t i) const {
    const auto consumers = consumers_of(groups_, i);
    if (consumers.empty()) return kNone;
    return buffers_[consumers.front().first].input_gradients.at(consumers.front().second);
  }

  GroupPlacement bind(std::size_t i, const MemoryPlan& memory) const {
    const auto offset = [&](BufferId buffer) {
      return buffer == kNone ? GroupPlacement::Offset()
                             : memory.offsets[static_cast<std::size_t>(buffer)];
    };
    const Buffers& buffers = buffers_[i];
    GroupPlacement placement{.output = offset(buffers.output),
                             .output_sums = offset(buffers.output_sums),
                             .saved = offset(buffers.saved),
                             .forward_scratch = offset(buffers.forward_scratch),
                             .backward_scratch = offset(buffers.backward_scratch)};
    if (!groups_[i].inputs.empty()) {
      const std::size_t first = producer_of(groups_, groups_[i].inputs[0]);
      placement.input_sums = offset(buffers_[first].output_sums);
    }
    for (const NodeId input : groups_[i].inputs) {
      placement.inputs.push_back(offset(buffers_[producer_of(groups_, input)].output));
    }
    for (const BufferId gradient : buffers.input_gradients) {
      placement.input_gradients.push_back(offset(gradient));
    }
    if (trains_ && !is_loss(i) && groups_[i].is_differentiated) {
      for (const auto& [c, k] : consumers_of(groups_, i)) {
        placement.output_gradients.push_back(offset(buffers_[c].input_gradients[k]));
      }
      if (placement.output_gradients.empty()) {
        throw ShapeError(
            fmt::format("the output of node {} has no reader; connect every node to the loss",
                        groups_[i].output));
      }
      const std::size_t keep = needs_[i].takes_two_gradients ? 2 : 1;
      for (std::size_t extra = keep; extra < placement.output_gradients.size(); ++extra) {
        placement.sums.emplace_back(placement.output_gradients[0].value_or(0),
                                    placement.output_gradients[extra].value_or(0));
      }
      placement.output_gradients.resize(std::min(keep, placement.output_gradients.size()));
    }
    return placement;
  }

  const std::vector<FusedGroup>& groups_;
  const std::vector<GroupNeeds>& needs_;
  const std::vector<std::size_t>& value_bytes_;
  const bool trains_;
  std::vector<Buffers> buffers_;
  std::vector<BufferLifetime> lifetimes_;
};

// Returns the parameters of a group. Only the main node of a group has parameters.
const std::vector<int>& parameters_of(const Graph& graph, const FusedGroup& group) {
  return graph.nodes[static_cast<std::size_t>(group.main)].parameters;
}

bool overlaps(const ArenaLayout& layout, int parameter, const Bucket& bucket) {
  const std::int64_t begin = layout.offset(static_cast<std::size_t>(parameter));
  const std::int64_t end = begin + layout.size(static_cast<std::size_t>(parameter));
  return begin < bucket.end && end > bucket.begin;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<BufferLifetime>& buffers) {
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return buffers[a].size_bytes > buffers[b].size_bytes;
  });

  std::vector<std::size_t> placed;
  for (const std::size_t i : order) {
    const BufferLifetime& buffer = buffers[i];
    const std::size_t size =
        (buffer.size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
    if (size == 0) continue;
    std::vector<std::pair<std::size_t, std::size_t>> taken;  // byte ranges [begin, end)
    for (const std::size_t other : placed) {
      const BufferLifetime& life = buffers[other];
      if (life.first > buffer.last || life.last < buffer.first) continue;
      taken.emplace_back(plan.offsets[other], plan.offsets[other] + life.size_bytes);
    }
    std::ranges::sort(taken);
    std::size_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + size <= begin) break;
      const std::size_t next = (end + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
      offset = std::max(offset, next);
    }
    plan.offsets[i] = offset;
    plan.total_bytes = std::max(plan.total_bytes, offset + size);
    placed.push_back(i);
  }
  return plan;
}

std::size_t producer_of(const std::vector<FusedGroup>& groups, NodeId value) {
  const auto found = std::ranges::find(groups, value, &FusedGroup::output);
  check(found != groups.end(), "every value that is read is the output of a group");
  return static_cast<std::size_t>(found - groups.begin());
}

std::vector<std::pair<std::size_t, std::size_t>> consumers_of(const std::vector<FusedGroup>& groups,
                                                              std::size_t i) {
  std::vector<std::pair<std::size_t, std::size_t>> consumers;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    for (std::size_t k = 0; k < groups[c].inputs.size(); ++k) {
      if (groups[c].inputs[k] == groups[i].output) consumers.emplace_back(c, k);
    }
  }
  return consumers;
}

bool has_gradient(const std::vector<FusedGroup>& groups, NodeId value) {
  return groups[producer_of(groups, value)].is_differentiated;
}

ProgramPlan plan_program(const std::vector<FusedGroup>& groups,
                         const std::vector<GroupNeeds>& needs,
                         const std::vector<std::size_t>& value_bytes, bool trains) {
  return Planner(groups, needs, value_bytes, trains).plan();
}

BucketSchedule schedule_buckets(const Graph& graph, const std::vector<FusedGroup>& groups,
                                const ArenaLayout& layout, const std::vector<Bucket>& buckets) {
  BucketSchedule schedule;
  schedule.first_used_by.resize(groups.size());
  schedule.completed_by.resize(groups.size());
  std::size_t first = groups.size();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (std::size_t i = groups.size(); i-- > 0;) {
      for (const int parameter : parameters_of(graph, groups[i])) {
        if (overlaps(layout, parameter, buckets[b])) first = std::min(first, i);
      }
    }
    check(first < groups.size(), "every bucket holds a parameter");
    // Parameters lie in the arena in forward order: the first group that reads a bucket in the
    // forward pass is the last that writes its gradients in the backward pass.
    schedule.first_used_by[first].push_back(static_cast<BucketId>(b));
    schedule.completed_by[first].push_back(static_cast<BucketId>(b));
  }
  // The lists of a group ascend by bucket number, which is the backward order. The forward pass
  // uses buckets in descending order, so its lists are reversed.
  for (std::vector<BucketId>& used : schedule.first_used_by) std::ranges::reverse(used);
  return schedule;
}

}  // namespace syncopate
