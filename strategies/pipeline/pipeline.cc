// --strategy pipeline: one replica. Its network is cut into stages. Each stage computes on its own
// device, and its variables live there. So a stage trains as one device does: there is nothing to
// pull or push. The stages are threads of one process, or tasks (task_pipeline.h).
#include <span>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "strategies/pipeline/pipeline_backend.h"
#include "strategies/pipeline/task_pipeline.h"
#include "strategies/single_replica.h"

namespace syncopate {

std::unique_ptr<Strategy> make_pipeline(const StrategyOptions& options, const Graph& graph) {
  if (options.devices.front().kind != DeviceKind::kCpu) {
    throw UnavailableError(
        "--strategy pipeline computes on CPUs only, stages on GPUs would need NCCL; choose "
        "--devices cpu");
  }
  const bool has_tasks = options.membership != nullptr && options.membership->members().size() > 1;
  std::vector<Stage> stages = choose_stages(graph, options.stages, options.cut,
                                            origin_of_stages(options.stages, has_tasks));
  if (has_tasks) {
    return make_task_pipeline(options, graph, std::move(stages));
  }
  LocalStages local{.all = std::move(stages)};
  for (int s = 0; s < static_cast<int>(local.all.size()); ++s) {
    local.backends.push_back(make_backend(backend_options(options, s)));
  }
  const int micro_batches = options.micro_batches;
  auto backend = std::make_unique<PipelineBackend>(
      std::move(local), micro_batches,
      [micro_batches](std::span<const Stage> all, std::int64_t samples) {
        return link_threads(all, micro_batches, samples);
      });
  const PipelineBackend& pipeline = *backend;  // belongs to the replica
  StrategyOptions whole = options;             // the model divides a step into micro-batches itself
  whole.micro_batches = 1;
  return make_single_replica(whole, graph, std::move(backend), [&pipeline] {
    return std::vector<double>(pipeline.idle_seconds().begin(), pipeline.idle_seconds().end());
  });
}

}  // namespace syncopate
