#include "strategies/strategy.h"

#include <fmt/format.h>

#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::array kStrategies = {
    StrategyRow{"one-device", "one replica, variables on its device", make_one_device},
    StrategyRow{"mirrored", "replicas of this process, each with a copy of the variables",
                make_mirrored},
    StrategyRow{"multi-worker-mirrored",
                "replicas of several processes, each with a copy of the variables",
                make_multi_worker_mirrored},
    StrategyRow{"central-storage", "replicas of this process on one copy in host memory",
                make_central_storage},
    StrategyRow{"pipeline",
                "stages of one network, each on a device of this process or in a task of its own",
                make_pipeline},
    StrategyRow{"parameter-server", "variables on servers, synchronous or asynchronous workers",
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
  throw UsageError(fmt::format("--strategy {}: no such strategy in this build; choose one of {}",
                               options.name, known));
}

bool is_synchronous(Strategy& strategy) noexcept {
  return std::holds_alternative<SynchronousJob*>(strategy.job(0));
}

SynchronousJob& synchronous_job(Strategy& strategy) {
  const Job job = strategy.job(0);
  check(std::holds_alternative<SynchronousJob*>(job), "the strategy is synchronous");
  return *std::get<SynchronousJob*>(job);
}

AsynchronousJob& asynchronous_job(Strategy& strategy, int replica) {
  const Job job = strategy.job(replica);
  check(std::holds_alternative<AsynchronousJob*>(job), "the strategy is asynchronous");
  return *std::get<AsynchronousJob*>(job);
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown error";
  }
}

BackendOptions backend_options(const StrategyOptions& options, int replica) {
  const std::size_t device = static_cast<std::size_t>(replica) % options.devices.size();
  return {.device = options.devices[device],
          .precision = options.precision,
          .deterministic = options.deterministic,
          .lanes = options.lanes,
          .plan_file = options.plan_file};
}

}  // namespace syncopate
