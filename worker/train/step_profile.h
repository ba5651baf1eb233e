// Says when a training step first uses the values of each bucket, and when the gradients of each
// bucket are complete. Times are fractions of the compute time of the step. They follow from the
// network and are not measured, so that runs under the virtual clock have equal bits on all
// machines: within a pass, a layer takes time in proportion to its multiply-adds, and the backward
// pass takes twice as long as the forward pass, because it has two products for each product of the
// forward pass.
#pragma once

#include <cstddef>
#include <vector>

#include "models/graph/graph.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate {

class StepProfile {
 public:
  // A step that uses all values at its beginning, and completes all gradients at its end.
  StepProfile() = default;
  explicit StepProfile(std::size_t buckets) : positions_(buckets) {}
  // layout, buckets: the arena of the graph's parameters. micro_batches: the number of parts in
  // which the step computes; values are used from the first part on, and gradients are complete in
  // the last part.
  StepProfile(const Graph& graph, const ArenaLayout& layout, const std::vector<Bucket>& buckets,
              int micro_batches = 1);

  std::size_t buckets() const noexcept { return positions_.size(); }
  // Returns the fraction of the step that is computed before the values of the bucket are used.
  double use(BucketId bucket) const { return kForward * position(bucket) / micro_batches_; }
  // Returns the fraction of the step that is computed when the gradients of the bucket are
  // complete.
  double completion(BucketId bucket) const {
    if (completes_at_end_) return 1.0;
    return 1.0 - (1.0 - kForward) * position(bucket) / micro_batches_;
  }
  // Lets all gradients be complete at the end of the step only, as when they are clipped by their
  // norm.
  void complete_at_end() noexcept { completes_at_end_ = true; }

  // Returns the profile of these buckets alone.
  StepProfile subset(const std::vector<BucketId>& buckets) const;

  static constexpr double kForward = 1.0 / 3.0;  // the fraction of the forward pass

 private:
  double position(BucketId bucket) const {
    const auto b = static_cast<std::size_t>(bucket);
    return b < positions_.size() ? positions_[b] : 0.0;
  }

  // For each bucket, the fraction of the multiply-adds of a pass that belong to layers before the
  // bucket's first layer.
  std::vector<double> positions_;
  int micro_batches_ = 1;
  bool completes_at_end_ = false;
};

}  // namespace syncopate
