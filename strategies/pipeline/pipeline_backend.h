// One backend over the devices of the pipeline's stages in this process. The model for training
// consists of these stages. A model for evaluation is the whole network on the device of the first
// of these stages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/thread_team.h"
#include "strategies/pipeline/handover.h"
#include "strategies/pipeline/stages.h"

namespace syncopate {

// The stages [first, first + backends.size()) of a network.
struct LocalStages {
  std::vector<Stage> all;  // all stages of the network
  int first = 0;
  std::vector<std::unique_ptr<Backend>> backends;  // one per local stage; values are in host memory
};

// A function that makes the hand-overs of the stages of this process. `all` are the stages of the
// network, `samples` is the largest number of samples in a micro-batch.
using MakeLinks =
    std::function<std::vector<StageLinks>(std::span<const Stage> all, std::int64_t samples)>;

class PipelineBackend final : public Backend {
 public:
  // Makes a backend for these stages. `make_links` is called when the model for training is
  // compiled. Throws UsageError if the system cannot start one thread per stage.
  PipelineBackend(LocalStages stages, int micro_batches, MakeLinks make_links);

  Device device() const noexcept override { return stages_.backends.front()->device(); }
  std::string description() const override;
  // Compiles a model for training or for evaluation. For training, `graph` must be the network that
  // was cut into the stages, and only one model may be compiled.
  std::unique_ptr<Model> compile(const Graph& graph, ParameterArena& arena, StateBlock& state,
                                 const CompileOptions& options) override;
  // Updates `range`: each stage of this process updates the part of the range that belongs to the
  // stage.
  void update(const Optimizer& optimizer, const UpdateStep& step, ParameterArena& arena,
              std::span<const Tensor> slots, Bucket range) override;

  // Returns the idle time of each stage of this process: how long the stage did not compute during
  // steps, summed over all steps.
  std::span<const double> idle_seconds() const noexcept { return idle_seconds_; }

 private:
  const Stage& stage(int local) const {
    return stages_.all[static_cast<std::size_t>(stages_.first) + static_cast<std::size_t>(local)];
  }

  const LocalStages stages_;
  const int micro_batches_;
  const MakeLinks make_links_;
  std::vector<double> idle_seconds_;
  ThreadTeam team_;
};

// Returns hand-overs between stages that are threads of this process.
std::vector<StageLinks> link_threads(std::span<const Stage> stages, int micro_batches,
                                     std::int64_t samples);

}  // namespace syncopate
