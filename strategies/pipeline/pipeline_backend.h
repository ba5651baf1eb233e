// The devices of a pipeline as one backend: a model for training is divided into stages, and a
// model for evaluation runs on the first stage's device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/thread_team.h"
#include "strategies/pipeline/stages.h"

namespace syncopate {

class PipelineBackend final : public Backend {
 public:
  // backends: one for each stage, whose values are in host memory. Throws UsageError if the system
  // starts fewer threads than stages.
  PipelineBackend(std::vector<Stage> stages, std::vector<std::unique_ptr<Backend>> backends,
                  int micro_batches);

  Device device() const noexcept override { return backends_.front()->device(); }
  std::string description() const override;
  // For training, `graph` must be the network that the stages were cut from, and there is one such
  // model.
  std::unique_ptr<Model> compile(const Graph& graph, ParameterArena& arena, StateBlock& state,
                                 const CompileOptions& options) override;
  // Each stage updates its part of the range.
  void update(const Optimizer& optimizer, const UpdateStep& step, ParameterArena& arena,
              std::span<const Tensor> slots, Bucket range) override;

 private:
  const std::vector<Stage> stages_;
  const std::vector<std::unique_ptr<Backend>> backends_;
  const int micro_batches_;
  ThreadTeam team_;
};

}  // namespace syncopate
