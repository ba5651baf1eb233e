// The variables of one asynchronous worker that trains in rounds (--push displacement). In a round
// the worker updates its own values by its own gradients. At the end it pushes its displacement as
// if this were a gradient: the shards make an outer step with it at once, and their answers are the
// values with which the next round begins. Used over any ShardTransport.
#pragma once

#include <memory>
#include <vector>

#include "strategies/collective/collective.h"
#include "strategies/coordinated_worker.h"
#include "strategies/replica_update.h"

namespace syncopate {

// Within a round, the arena holds the worker's own values. The optimizer's slots are the worker's
// own, too, and no checkpoint has them.
class DisplacementVariables final : public VariableStore {
 public:
  // `replica` and `transport` must outlive the object. Throws what check_local_updates() throws.
  DisplacementVariables(Replica& replica, ShardTransport& transport,
                        const StrategyOptions& options);

  void pull(const UpdateStep& update) override;
  // Waits in the first step of a round only.
  void wait_values(BucketId bucket) override;
  // Sends nothing: the gradients update the worker's own values in commit().
  void push(BucketId bucket, const StepReport& report) override;
  // In the last step of a round, also pushes the displacement. If the loss of the step or a
  // displacement is not finite, nothing of the round reaches the shards, and the loss is not a
  // number.
  StepReport commit() override;
  // Pushes the displacement of the steps so far. Throws UsageError if it is not finite.
  void end_round_early() override;
  CommunicationTimes times() const override { return transport_.with_traffic(watch_.times()); }

 private:
  // Pushes the displacement. Returns false, and pushes nothing, if it is not finite.
  bool end_round();
  bool is_in_round() const noexcept { return !rates_.empty(); }

  Replica& replica_;
  ShardTransport& transport_;
  ReplicaUpdate update_;  // of the inner optimizer
  const LocalUpdateOptions options_;
  const float outer_rate_;
  const int lanes_;
  Tensor start_;  // the values with which the round began, [arena total] f32
  UpdateStep now_;
  std::int64_t updates_ = 0;       // with the present slots; Adam's bias correction counts them
  StepReport report_;              // of the step
  StepReport round_;               // sums over the steps of the round
  std::vector<float> rates_;       // the learning rate of each step of the round
  std::vector<std::int64_t> bad_;  // samples of each step of the round that could not be read
  std::int64_t rounds_ = 0;
  Stopwatch watch_;
};

}  // namespace syncopate
