#include "strategies/strategy.h"

#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::array kStrategies = {
    StrategyRow{"one-device", "one replica, variables on its device", make_one_device},
    StrategyRow{"mirrored", "replicas of this process, each with a copy of the variables",
                make_mirrored},
    StrategyRow{"multi-worker-mirrored", "the same over several processes",
                make_multi_worker_mirrored},
    StrategyRow{"central-storage", "replicas of this process on one copy in host memory",
                make_central_storage},
    StrategyRow{"parameter-server",
                "variables on servers; workers in step, or each at its own pace",
                make_parameter_server},
};

}  // namespace

std::span<const StrategyRow> strategies() noexcept { return kStrategies; }

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, const Graph& graph) {
  std::string known;
  for (const StrategyRow& row : kStrategies) {
    if (row.name == options.name) return row.make(options, graph);
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UsageError("--strategy " + options.name +
                   ": no such strategy in this build; choose one of " + known);
}

BackendOptions backend_options(const StrategyOptions& options, int replica) {
  const std::size_t place = static_cast<std::size_t>(replica) % options.devices.size();
  return {.device = options.devices[place],
          .precision = options.precision,
          .deterministic = options.deterministic,
          .lanes = options.lanes,
          .plan_file = options.plan_file};
}

}  // namespace syncopate
