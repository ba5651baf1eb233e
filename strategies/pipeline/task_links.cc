#include "strategies/pipeline/task_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/tensor/buffer.h"
#include "strategies/cluster/handshake.h"
#include "strategies/collective/ring_links.h"
#include "strategies/collective/shared_segment.h"

namespace syncopate {
namespace {

// The counts of one boundary between stages, at the front of the shared segment. Zero bytes are
// their first values.
struct BoundaryCounts {
  alignas(64) std::atomic<std::uint32_t> outputs;
  alignas(64) std::atomic<std::uint32_t> gradients;
};

// Tensors are aligned like all host memory.
std::int64_t padded_elements(const Shape& shape) {
  constexpr auto kLine = static_cast<std::int64_t>(kAlignmentBytes / sizeof(float));
  return (num_elements(shape) + kLine - 1) / kLine * kLine;
}

// Returns `count` tensors of this shape from element `begin` of a block on.
std::vector<Tensor> tensors_in(const Tensor& block, std::int64_t begin, const Shape& shape,
                               int count) {
  std::vector<Tensor> tensors;
  tensors.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const std::int64_t first = begin + i * padded_elements(shape);
    tensors.push_back(block.rows(first, first + num_elements(shape)).reshaped(shape));
  }
  return tensors;
}

}  // namespace

TaskLinks::TaskLinks(const CollectiveOptions& options, std::span<const Stage> stages,
                     int micro_batches)
    : options_(options), micro_batches_(micro_batches), index_(options.membership->index()) {
  for (const Stage& stage : stages.first(stages.size() - 1)) {
    outputs_.push_back(stage.graph.logits_shape());
  }
}

StageLinks TaskLinks::connect(std::int64_t samples) {
  StageLinks links;
  if (options_.transport != Transport::kTcp && connect_by_memory(samples, links)) return links;
  connect_by_tcp(samples, links);
  return links;
}

Shape TaskLinks::shape_behind(int stage, std::int64_t samples) const {
  return shape_of_samples(outputs_[static_cast<std::size_t>(stage)], samples);
}

int TaskLinks::in_flight_behind(int stage) const {
  return micro_batches_in_flight(stage, static_cast<int>(outputs_.size()) + 1, micro_batches_);
}

HandoverNames TaskLinks::names(int peer, const char* what) const {
  const Member& member = options_.membership->members()[static_cast<std::size_t>(peer)];
  return {.self = fmt::format("rank {}", index_),
          .peer = describe(member.index, member.host, member.pid),
          .what = what};
}

WaitRules TaskLinks::rules() const { return {abort_, *options_.membership, options_.timeout}; }

// The block of task s holds what stage s sends: the gradients to stage s - 1, then the outputs to
// stage s + 1. Returns false on every task if the tasks cannot map one segment.
bool TaskLinks::connect_by_memory(std::int64_t samples, StageLinks& links) {
  const int last = static_cast<int>(outputs_.size());
  const auto elements_behind = [&](int stage) -> std::int64_t {
    if (stage < 0 || stage == last) return 0;
    return in_flight_behind(stage) * padded_elements(shape_behind(stage, samples));
  };
  std::vector<std::int64_t> block_elements;
  for (int s = 0; s <= last; ++s) {
    block_elements.push_back(elements_behind(s - 1) + elements_behind(s));
  }
  const std::unique_ptr<SharedSegment> segment =
      share_segment(*options_.membership, static_cast<std::size_t>(last) * sizeof(BoundaryCounts),
                    block_elements, options_.timeout);
  if (segment == nullptr) return false;
  auto* const counts = reinterpret_cast<BoundaryCounts*>(segment->memory->data());
  // boundary: the stage before it.
  const auto make = [&](int boundary, bool is_gradient, int peer) {
    const int sender = is_gradient ? boundary + 1 : boundary;
    const std::int64_t begin = is_gradient ? 0 : elements_behind(boundary - 1);
    return std::make_shared<CountedHandover>(
        HandoverTensors{tensors_in(segment->blocks[static_cast<std::size_t>(sender)], begin,
                                   shape_behind(boundary, samples), in_flight_behind(boundary)),
                        micro_batches_},
        is_gradient ? counts[boundary].gradients : counts[boundary].outputs, rules(),
        names(peer, is_gradient ? "gradient" : "output"));
  };
  if (index_ > 0) {
    links.inputs = make(index_ - 1, false, index_ - 1);
    links.input_gradients = make(index_ - 1, true, index_ - 1);
  }
  if (index_ < last) {
    links.outputs = make(index_, false, index_ + 1);
    links.output_gradients = make(index_, true, index_ + 1);
  }
  return true;
}

// Outputs go to the next rank on the ring's connection for large tensors, gradients come back on
// the one for small messages. The connections from the last rank to the first are not used.
void TaskLinks::connect_by_tcp(std::int64_t samples, StageLinks& links) {
  Ring ring = connect_ring(options_);
  RingLinks& sockets = ring.links.front();
  exchange_ = std::make_unique<LinkExchange>(abort_);
  const auto tensors_behind = [&](int stage) {
    return HandoverTensors{make_host_tensors(shape_behind(stage, samples), in_flight_behind(stage)),
                           micro_batches_};
  };
  if (const int before = index_ - 1; before >= 0) {
    links.inputs =
        exchange_->add_receiver(std::move(sockets.bulk_from_previous), tensors_behind(before),
                                rules(), names(before, "output"));
    links.input_gradients = exchange_->add_sender(
        std::move(sockets.small_from_previous), tensors_behind(before), names(before, "gradient"));
  }
  if (std::cmp_less(index_, outputs_.size())) {
    links.outputs = exchange_->add_sender(std::move(sockets.bulk_to_next), tensors_behind(index_),
                                          names(index_ + 1, "output"));
    links.output_gradients =
        exchange_->add_receiver(std::move(sockets.small_to_next), tensors_behind(index_), rules(),
                                names(index_ + 1, "gradient"));
  }
  exchange_->start(std::move(ring));
}

}  // namespace syncopate
