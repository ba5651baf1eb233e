// The variables of a stage in a job with one task per stage. At the end of a step the tasks sum
// their step reports, so that every task knows the step's scores and stop requests. Therefore
// commit() returns only when all stages have ended the step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/optim/optimizer.h"
#include "strategies/pipeline/task_links.h"
#include "strategies/snapshot.h"
#include "strategies/strategy.h"

namespace syncopate {

class StageVariables final : public VariableStore {
 public:
  // `own` are the stage's elements in the replica's arena. `links` connects this task to the tasks
  // of the neighbouring stages. `idle_seconds` is the stage's idle time, which the stage's model
  // increases. All arguments must outlive the object.
  StageVariables(Replica& replica, const StrategyOptions& options, Bucket own,
                 const TaskLinks& links, const double& idle_seconds);

  void pull(const UpdateStep& update) override { update_ = update; }
  void wait_values(BucketId /*bucket*/) override {}
  void push(BucketId bucket, const StepReport& report) override;
  StepReport commit() override;
  CommunicationTimes times() const override;

  // Returns the optimizer slots of the whole network; this task updates only the elements of its
  // stage.
  std::vector<Snapshot::Slot> slots() const { return named_slots(*optimizer_, slots_); }
  std::int64_t steps() const noexcept { return steps_; }  // number of committed steps
  // Returns how long the stage has waited for other stages, in all steps.
  double idle_seconds() const noexcept { return idle_seconds_ + waited_seconds_; }

 private:
  void clip_gradients();
  void call_collective(const std::function<void(Collective&)>& call);

  Replica& replica_;
  const Bucket own_;
  const TaskLinks& links_;
  const double& idle_seconds_;
  const std::unique_ptr<Optimizer> optimizer_;
  std::vector<Tensor> slots_;
  const double clip_norm_;
  const Membership& membership_;
  const Tensor trailer_;
  WorkId report_sum_ = 0;
  UpdateStep update_;
  std::int64_t steps_ = 0;
  double waited_seconds_ = 0.0;  // time waited for the reports of other stages
};

}  // namespace syncopate
