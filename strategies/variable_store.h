// The three verbs in which strategies differ: pull, push, commit. One store per replica, used by
// its thread only.
#pragma once

#include "models/backend/model.h"
#include "models/optim/optimizer.h"
#include "ps/coordinator/stop_kind.h"
#include "strategies/collective/collective.h"

namespace syncopate {

// What a replica says of its step, and what all of them said: it travels with the last bucket, so
// that every rank learns the same at the same step.
struct StepReport {
  Scores scores;         // sums
  ps::StopCounts stops;  // of the tasks that were asked to stop
  // It stood so long for the others in the step before (strategies/peers_wait.h); of all: the
  // least.
  double stood_seconds = 0.0;
};

class VariableStore {
 public:
  virtual ~VariableStore() = default;
  // Starts to fetch the values this step computes with. `update` is the step's: it is known from
  // here on, since a bucket may be applied before the last one is pushed.
  virtual void pull(const UpdateStep& update) = 0;
  // Returns when the bucket's values may be read.
  virtual void wait_values(BucketId bucket) = 0;
  // After forward and before the first push, once per step.
  virtual void report(const StepReport& mine) = 0;
  // Called as soon as the bucket's gradients are complete. May start to send them; must not block
  // for long.
  virtual void push(BucketId bucket) = 0;
  // Every push of this step is summed and applied, as the strategy promises. Returns the reports of
  // the replicas that the strategy keeps in step, summed. Throws PeerError.
  virtual StepReport commit() = 0;
  virtual CommunicationTimes times() const = 0;
};

}  // namespace syncopate
