// The variables of one replica that trains in rounds. In a round the replica updates its own values
// by its own gradients. At the end of the round, the replicas sum their displacements, and every
// replica makes the same outer step from the values with which the round began. Before the first
// round, the replicas may sum gradients in every step. Used by local_sgd.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "strategies/collective/work_progress.h"
#include "strategies/gradient_sums.h"
#include "strategies/local_updates/round_report.h"
#include "strategies/replica_update.h"

namespace syncopate {

// Outside a round, the arena holds the outer values. Within a round, it holds the replica's own.
class LocalVariables final : public VariableStore {
 public:
  // group: joins the replicas of this task, for the means of LocalUpdateOptions::sync_groups; null
  // if there are none. average_statistics: averages the running statistics of all replicas,
  // weighted by the samples of the round; every replica calls it at the end of a round. aborted:
  // set when the job ends. `replica` and `aborted` must outlive the object. Throws UsageError for
  // constants of the outer step that are out of range.
  LocalVariables(Replica& replica, const StrategyOptions& options, const AbortReason& aborted,
                 std::unique_ptr<Collective> group,
                 std::function<void(Replica&)> average_statistics);

  // Throws PeerError if the job has ended: within a round, no collective would notice it.
  void pull(const UpdateStep& update) override;
  void wait_values(BucketId /*bucket*/) override {}
  // Within a round, sends nothing: the gradients update the replica's own values in commit().
  void push(BucketId bucket, const StepReport& report) override;
  // In the last step of a round, also exchanges displacements. Exchanges are matched by the number
  // of the round, so replicas may have trained different numbers of steps. If a loss or a
  // displacement of the round is not finite, the outer values stay as they were, and the loss of
  // the returned report is not finite. Throws PeerError.
  StepReport commit() override;
  // The time until the slowest replica has finished its round counts as waiting for replicas.
  CommunicationTimes times() const override;

  // Returns the slots of the outer step. The slots of the inner optimizer differ between replicas.
  std::vector<Snapshot::Slot> slots() const { return outer_.named(); }
  std::vector<Snapshot::Slot> inner_slots() const { return update_.slots(); }
  // Whether the replicas summed gradients in the last step. All replicas have equal slots then.
  bool sums_gradients() const noexcept { return sums_now_; }
  // Returns how many steps the current round still has, if UpdateStep::ends_round does not end it.
  std::int64_t steps_left() const noexcept { return options_.sync_every - round_.steps; }
  // Returns the number of steps of each replica in the last round; empty before the first round.
  std::span<const std::int64_t> steps_of_round() const noexcept { return steps_of_round_; }
  // Get and set the inner learning rate of the last round; absent if the outer momentum does not
  // depend on it.
  std::optional<float> outer_rate() const;
  void set_outer_rate(float rate) noexcept { rate_of_last_round_ = rate; }

 private:
  StepReport end_round();
  // Gathers the reports of all replicas, in rank order, and compares their hashes.
  std::vector<RoundReport> gather(const RoundReport& own);
  // Takes the mean of the values of this task's replicas, weighted by the samples since the last
  // mean.
  void average_group();
  // Sums the displacements of all replicas in the arena's gradients.
  void sum_displacements(float weight);
  // reports: of all replicas.
  void make_outer_step(std::span<const RoundReport> reports);
  // Resets or averages the slots of the inner optimizer. `weight`: of this replica.
  void end_inner_state(float weight);
  void reset_inner_state();
  std::uint64_t hash() const;

  Replica& replica_;
  ReplicaUpdate update_;  // of the inner optimizer
  GradientSums sums_;     // for the phase before the first round
  const LocalUpdateOptions options_;
  const OuterRuleOptions outer_options_;
  OptimizerSlots outer_;
  const bool needs_displacements_;
  const AbortReason& aborted_;
  const std::unique_ptr<Collective> group_;
  std::int64_t group_samples_ = 0;  // of this replica since the last mean of the group
  const std::function<void(Replica&)> average_statistics_;
  Tensor start_;  // the outer values at the start of the round, [arena total] f32
  UpdateStep now_;
  bool sums_now_ = false;
  StepReport report_;
  RoundReport round_;
  std::vector<std::int64_t> steps_of_round_;
  std::int64_t rounds_ = 0;
  float rate_of_last_round_ = 0.0F;  // the inner learning rate of its last step
  std::uint64_t hash_ = 0;           // of the outer variables
  double gather_seconds_ = 0.0;
};

}  // namespace syncopate
