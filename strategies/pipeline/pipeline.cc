// --strategy pipeline: one replica whose network is cut into stages. Each stage computes on a
// device of its own, where its variables live, so a stage trains what one device trains: there is
// nothing to pull or push.
#include <fmt/format.h>

#include <utility>

#include "models/base/errors.h"
#include "strategies/pipeline/pipeline_backend.h"
#include "strategies/single_replica.h"

namespace syncopate {

std::unique_ptr<Strategy> make_pipeline(const StrategyOptions& options, const Graph& graph) {
  if (options.replicas != 1) {
    throw UsageError(
        fmt::format("--replicas {}: --strategy pipeline has one replica; --stages N gives it "
                    "several devices",
                    options.replicas));
  }
  if (options.devices.front().kind != DeviceKind::kCpu) {
    throw UnavailableError("--strategy pipeline computes on CPUs only; choose --devices cpu");
  }
  std::vector<std::unique_ptr<Backend>> backends;
  for (int s = 0; s < options.stages; ++s) {
    backends.push_back(make_backend(backend_options(options, s)));
  }
  auto backend = std::make_unique<PipelineBackend>(cut_into_stages(graph, options.stages),
                                                   std::move(backends), options.micro_batches);
  StrategyOptions whole = options;  // the model divides a step into micro-batches itself
  whole.micro_batches = 1;
  return make_single_replica(whole, graph, std::move(backend));
}

}  // namespace syncopate
