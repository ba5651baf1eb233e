// Trains one stage of a pipeline. Has the stage's models and its part of the variables, and
// computes the micro-batches of a step in the order 1F1B. The caller provides the hand-overs to the
// neighbouring stages.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/trace.h"
#include "strategies/pipeline/handover.h"
#include "strategies/pipeline/stages.h"

namespace syncopate {

// The parts of a StageWorker. `stage` and `backend` must outlive the worker.
struct StageParts {
  const Stage* stage = nullptr;
  Backend* backend = nullptr;  // used by this stage only
  int index = 0;               // number of this stage, from 0
  int stages = 1;
  StageLinks links;
};

// One stage of a pipeline, compiled for training. One thread only.
class StageWorker {
 public:
  // Compiles the stage for training. `arena` and `state` belong to the whole network, are in host
  // memory and must outlive the worker, which uses the stage's part of both. `options` has the
  // batch size of a micro-batch. Throws the errors of Backend::compile().
  StageWorker(const StageParts& parts, int micro_batches, ParameterArena& arena, StateBlock& state,
              const CompileOptions& options);

  int stage() const noexcept { return stage_; }  // number of the stage in the network
  // From now on records the passes over micro-batches, and the waits for other stages, in `row`, a
  // row of the trace.
  void record(TraceThread* row) noexcept { row_ = row; }
  // Prepares a step. Called while no stage of this process computes.
  void reset();
  // Computes the stage's part of a step. Returns early if another stage of this process has failed.
  void run(const Batch& batch);
  // Ends the waits of the other stages of this process, because this stage has failed.
  void give_up();
  // Returns the scores, summed over the samples of the step; zeros unless this is the last stage.
  const Scores& scores() const noexcept { return scores_; }
  // Returns how long run() has waited for neighbours in this step.
  double waited_seconds() const noexcept { return waited_seconds_; }

 private:
  Model& model_of(int micro_batch) {
    return *models_[static_cast<std::size_t>(micro_batch % in_flight_)];
  }
  std::int64_t samples_of(const Batch& batch, int micro_batch) const;
  bool forward(const Batch& batch, int m);
  bool backward(const Batch& batch, int m);
  bool receive(Handover& from, int m, std::int64_t samples);
  void add_gradients(int m);

  const Graph& graph_;
  const int stage_;
  const int micro_batches_;
  const StageLinks links_;
  const bool is_last_;
  const Tensor values_;
  const Tensor gradients_;
  ParameterArena arena_;
  StateBlock state_;
  const int in_flight_;  // largest number of micro-batches between forward and backward pass
  std::vector<std::unique_ptr<Model>> models_;  // one model for each micro-batch in flight
  std::vector<float> sum_;
  Scores scores_;
  double waited_seconds_ = 0.0;
  TraceThread* row_ = nullptr;
};
}  // namespace syncopate
