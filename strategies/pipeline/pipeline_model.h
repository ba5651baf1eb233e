// The stages of a pipeline that compute in this process, as one model. Each stage computes on its
// own thread. Micro-batches pass through the stages in the order 1F1B: a stage runs forward passes
// until its first gradient arrives, and then backward and forward passes in turn. The update is
// made after all micro-batches. Source: Narayanan et al. 2019, "PipeDream", section 3.2 (1F1B);
// Huang et al. 2019, "GPipe" (the update).
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

// A model that consists of stages, compiled for training. Used by one thread, which also computes
// the first of the stages.
class PipelineModel final : public Model {
 public:
  // Compiles the stages for training. `arena` and `state` belong to the whole network and are in
  // host memory. `options` are the options for the whole network on one device; options.batch_size
  // is the number of samples of a step. In each step the model adds the time during which stage i
  // of this process did not compute to idle_seconds[i]. Throws the errors of Backend::compile().
  // All arguments must outlive the model.
  PipelineModel(std::span<const StageParts> stages, int micro_batches, ThreadTeam& team,
                ParameterArena& arena, StateBlock& state, const CompileOptions& options,
                std::span<double> idle_seconds);

  std::int64_t batch_size() const noexcept override { return batch_size_; }
  // Runs the forward and also the backward passes of all micro-batches, because a stage begins
  // backward passes before other stages have ended their forward passes.
  void start_forward(const Batch& batch, const ValuesHook& before_use) override;
  // Returns the scores of the last stage; zeros if that stage is in another process.
  Scores scores() override { return scores_; }
  void backward(const GradientHook& on_ready) override;
  void accumulate() override;
  // From now on records in `trace` one row for each stage, with the stage's passes over
  // micro-batches and its waits for other stages.
  bool record_passes(Trace& trace) override;
  // Throws UnavailableError: predictions need a model for evaluation.
  Tensor logits() const override;

 private:
  const std::int64_t batch_size_;
  ThreadTeam& team_;
  ParameterArena& arena_;
  const std::span<double> idle_seconds_;
  std::vector<std::unique_ptr<StageWorker>> workers_;  // by stage of this process
  std::vector<TraceThread*> rows_;                     // by stage; empty if nothing is recorded
  Scores scores_;
};

// Returns the largest number of samples in a micro-batch.
constexpr std::int64_t samples_of_micro_batch(std::int64_t batch_size, int micro_batches) noexcept {
  return (batch_size + micro_batches - 1) / micro_batches;
}

}  // namespace syncopate
