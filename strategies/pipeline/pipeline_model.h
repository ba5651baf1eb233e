// The stages of a pipeline as one model. A stage computes on a thread of its own; micro-batches
// follow each other through the stages in the order 1F1B: a stage runs forward passes until its
// first gradient arrives, then a backward and a forward pass in turns. Source: Narayanan et al.
// 2019, "PipeDream", section 3.2, with the update after all micro-batches of Huang et al. 2019,
// "GPipe".
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/thread_team.h"
#include "strategies/pipeline/stages.h"

namespace syncopate {

// What a stage computes with. The stages are cut from the network that the arena belongs to.
struct StageParts {
  const Stage* stage = nullptr;
  Backend* backend = nullptr;  // of this stage alone
};

// A model of the whole network, compiled for training. It is used by one thread, which computes the
// first stage.
class PipelineModel final : public Model {
 public:
  // arena and state are those of the whole network, in host memory. options: as for one device,
  // with the batch size of a step. Throws what Backend::compile() throws. All arguments must
  // outlive the model.
  PipelineModel(std::span<const StageParts> stages, int micro_batches, ThreadTeam& team,
                ParameterArena& arena, StateBlock& state, const CompileOptions& options);

  std::int64_t batch_size() const noexcept override { return batch_size_; }
  // Runs the forward and the backward passes of all micro-batches: a stage begins its backward
  // passes before others have ended their forward passes.
  void start_forward(const Batch& batch, const ValuesHook& before_use) override;
  Scores scores() override { return scores_; }
  void backward(const GradientHook& on_ready) override;
  void accumulate() override;
  // Throws UnavailableError: a pipeline predicts by a model for evaluation.
  Tensor logits() const override;

 private:
  class Worker;

  const std::int64_t batch_size_;
  const int micro_batches_;
  ThreadTeam& team_;
  ParameterArena& arena_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by stage
  Scores scores_;
};

}  // namespace syncopate
