// The stages of a pipeline that compute in this process, as one model. Each stage computes on a
// thread of its own; micro-batches follow each other through the stages in the order 1F1B: a stage
// runs forward passes until its first gradient arrives, then a backward and a forward pass in
// turns. Source: Narayanan et al. 2019, "PipeDream", section 3.2, with the update after all
// micro-batches of Huang et al. 2019, "GPipe".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/thread_team.h"
#include "strategies/pipeline/stage_worker.h"

namespace syncopate {

class TraceThread;

// A model of these stages, compiled for training. It is used by one thread, which computes the
// first of them.
class PipelineModel final : public Model {
 public:
  // arena and state belong to the whole network and are in host memory. options: as for one device,
  // with the batch size of a step. idle_seconds: by stage; the model adds the time that the stage
  // did not compute during a step. Throws what Backend::compile() throws. All arguments must
  // outlive the model.
  PipelineModel(std::span<const StageParts> stages, int micro_batches, ThreadTeam& team,
                ParameterArena& arena, StateBlock& state, const CompileOptions& options,
                std::span<double> idle_seconds);

  std::int64_t batch_size() const noexcept override { return batch_size_; }
  // Runs the forward and the backward passes of all micro-batches: a stage begins its backward
  // passes before others have ended their forward passes.
  void start_forward(const Batch& batch, const ValuesHook& before_use) override;
  // Returns zeros if the last stage is in another process.
  Scores scores() override { return scores_; }
  void backward(const GradientHook& on_ready) override;
  void accumulate() override;
  // Records a row for each stage: its passes of micro-batches and its waits for other stages.
  bool record_passes(Trace& trace) override;
  // Throws UnavailableError: a pipeline predicts by a model for evaluation.
  Tensor logits() const override;

 private:
  const std::int64_t batch_size_;
  ThreadTeam& team_;
  ParameterArena& arena_;
  const std::span<double> idle_seconds_;
  std::vector<std::unique_ptr<StageWorker>> workers_;  // by stage of this process
  std::vector<TraceThread*> rows_;                     // by stage; empty: nothing is recorded
  Scores scores_;
};

// Returns the batch size of a micro-batch.
constexpr std::int64_t samples_of_micro_batch(std::int64_t batch_size, int micro_batches) noexcept {
  return (batch_size + micro_batches - 1) / micro_batches;
}

}  // namespace syncopate
