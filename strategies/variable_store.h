// Strategies differ in three verbs: pull, push, commit. Every replica has one store, used by the
// replica's thread only.
#pragma once

#include <algorithm>

#include "models/backend/model.h"
#include "models/optim/optimizer.h"
#include "ps/coordinator/stop_kind.h"
#include "strategies/collective/collective.h"

namespace syncopate {

// What a replica reports about its step. The report travels with the gradients, so that all
// replicas of a synchronous job learn the sum of all reports at the same step.
struct StepReport {
  Scores scores;         // sums over the samples of the step
  ps::StopCounts stops;  // number of tasks that were asked to stop
  // Seconds this replica was blocked on communication in the previous step. In a sum of reports:
  // the least of all replicas. Set by the store.
  double blocked_seconds = 0.0;

  // Adds the numbers of another replica's report to this one.
  StepReport& operator+=(const StepReport& other) {
    scores += other.scores;
    stops += other.stops;
    blocked_seconds = std::min(blocked_seconds, other.blocked_seconds);
    return *this;
  }
};

class VariableStore {
 public:
  virtual ~VariableStore() = default;
  // Starts to fetch the variables' values for this step. `update` has the learning rate and the
  // number of the step's update; a bucket may be updated with them before the last one is pushed.
  virtual void pull(const UpdateStep& update) = 0;
  // Returns when the bucket's values may be read, after a pull.
  virtual void wait_values(BucketId bucket) = 0;
  // Called once per bucket, in the order of buckets, as soon as its gradients are complete. May
  // start to send them; must not block for long. Every push of a step has the same report.
  virtual void push(BucketId bucket, const StepReport& report) = 0;
  // Commits the step: returns when every push of the step is summed and applied, as far as the
  // strategy promises. Returns the sum of the reports of all replicas under a synchronous job, else
  // this replica's own. Throws PeerError.
  virtual StepReport commit() = 0;
  virtual CommunicationTimes times() const = 0;
};

}  // namespace syncopate
