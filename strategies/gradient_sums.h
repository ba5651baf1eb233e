// Gradients that are summed on the host in every step. The all-reduce of a bucket starts as soon as
// the bucket's gradients are complete, while the backward pass goes on with earlier layers; then
// every replica makes the same update. Gradients are clipped by the norm of the sums. Used if
// every replica has its own copy of the variables.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/replica_update.h"
#include "strategies/step_trailer.h"

namespace syncopate {

// The sums and updates of one replica. Used by the replica's thread only.
class GradientSums {
 public:
  // `replica` and `update` must outlive the object.
  GradientSums(Replica& replica, ReplicaUpdate& update);

  // Starts to sum the bucket's gradients. See VariableStore::push().
  void push(BucketId bucket, const StepReport& report);
  // Waits for the sums of the step, and updates the values. Returns the sum of all reports.
  StepReport commit();
  // Returns how many seconds this replica has waited for other replicas, in all steps but the last.
  double peers_wait_seconds() const noexcept { return peers_wait_.waited_seconds(); }

 private:
  struct BucketSum {
    Tensor gradients;
    std::int64_t begin = 0;  // arena index of the sum's first element
    WorkId work = 0;
  };

  void wait(WorkId work);
  std::span<float> trailer() const;

  Replica& replica_;
  ReplicaUpdate& update_;
  std::vector<BucketSum> sums_;  // the sum in progress of each bucket
  StepReport report_;
  PeersWait peers_wait_;
};

// Throws UsageError if the job has more replicas than a step report can be summed over.
void require_summable_reports(const StrategyOptions& options, int replicas);

}  // namespace syncopate
