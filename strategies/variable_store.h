// The three operations that differ between strategies: pull, push and commit. Every replica has one
// store, which only the replica's thread uses.
#pragma once

#include <algorithm>

#include "models/backend/model.h"
#include "models/optim/optimizer.h"
#include "ps/coordinator/stop_kind.h"
#include "strategies/collective/collective.h"

namespace syncopate {

// What a replica reports about its step. The report is sent with the gradients, so that all
// replicas of a synchronous job get the sum of all reports at the same step. Replicas that do not
// exchange anything in every step train in rounds: they get the sums at the end of a round.
struct StepReport {
  Scores scores;         // sums over the samples of the step
  ps::StopCounts stops;  // number of tasks that were asked to stop
  // How many seconds communication blocked this replica in the previous step. A sum of reports has
  // the least value of all replicas. Set by the store.
  double blocked_seconds = 0.0;
  // The number of steps of the round that the step ends. In a synchronous job, the report then has
  // the sums over these steps of all replicas, and its loss is the sum of the steps' mean losses.
  // Otherwise, and if it is 0 because the round goes on, the report is the replica's own of one
  // step.
  std::int64_t round_steps = 1;

  // Adds the scores and stop requests of another replica's report. blocked_seconds becomes the
  // lesser of the two values.
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
  // number of the step's update. pull() needs `update` already, because a bucket may be updated
  // before the step's last bucket is pushed.
  virtual void pull(const UpdateStep& update) = 0;
  // Waits until the bucket's values of the last pull() may be read.
  virtual void wait_values(BucketId bucket) = 0;
  // Takes the bucket's gradients, and may start to send them; must not block for long. Called once
  // per bucket, in the order of buckets, as soon as the bucket's gradients are complete. Every push
  // of a step has the same report.
  virtual void push(BucketId bucket, const StepReport& report) = 0;
  // Commits the step. Waits until the pushes of the step are summed and applied; asynchronous
  // strategies may return earlier. Returns the sum of the reports of all replicas in a synchronous
  // job, and this replica's report in other jobs. In a job with rounds, StepReport::round_steps
  // says which of the two it is; it is equal on all replicas, and the last step of the run ends a
  // round. Throws PeerError.
  virtual StepReport commit() = 0;
  // Ends the round of an asynchronous replica before it has all its steps. Does nothing between
  // rounds. Throws PeerError.
  virtual void end_round_early() {}
  virtual CommunicationTimes times() const = 0;
};

}  // namespace syncopate
