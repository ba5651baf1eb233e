#include "strategies/pipeline/pipeline_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/pipeline/pipeline_model.h"

namespace syncopate {

PipelineBackend::PipelineBackend(std::vector<Stage> stages,
                                 std::vector<std::unique_ptr<Backend>> backends, int micro_batches)
    : stages_(std::move(stages)),
      backends_(std::move(backends)),
      micro_batches_(micro_batches),
      team_(static_cast<int>(stages_.size()), "stage") {}

std::string PipelineBackend::description() const {
  return fmt::format("{} stages, each {}", stages_.size(), backends_.front()->description());
}

std::unique_ptr<Model> PipelineBackend::compile(const Graph& graph, ParameterArena& arena,
                                                StateBlock& state, const CompileOptions& options) {
  if (options.mode != Mode::kTrain) {
    return backends_.front()->compile(graph, arena, state, options);
  }
  std::vector<StageParts> parts;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    parts.push_back({.stage = &stages_[s], .backend = backends_[s].get()});
  }
  return std::make_unique<PipelineModel>(parts, micro_batches_, team_, arena, state, options);
}

void PipelineBackend::update(const Optimizer& optimizer, const UpdateStep& step,
                             ParameterArena& arena, std::span<const Tensor> slots, Bucket range) {
  team_.run([&](int s) {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    const Bucket part{.begin = std::max(range.begin, stage.first_value),
                      .end = std::min(range.end, stage.end_value)};
    if (part.begin >= part.end) return;
    backends_[static_cast<std::size_t>(s)]->update(optimizer, step, arena, slots, part);
  });
}

}  // namespace syncopate
