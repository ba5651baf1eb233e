#include "strategies/strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "models/base/errors.h"
#include "models/base/flag_rules.h"

namespace syncopate {
namespace {

using Tasks = StrategyRow::Tasks;
using Variables = StrategyRow::Variables;

constexpr std::array<std::string_view, 1> kLocal = {"local"};
constexpr std::array<std::string_view, 1> kRing = {"ring"};
constexpr std::array<std::string_view, 2> kInOneProcess = {"local", "nccl"};
constexpr std::array<std::string_view, 3> kOnHost = {"local", "ring", "mpi"};
constexpr std::array<std::string_view, 4> kEvery = {"local", "ring", "mpi", "nccl"};

constexpr std::array kStrategies = {
    StrategyRow{.name = kOneDevice,
                .help = "one replica, variables on its device",
                .title = "One device",
                .short_name = "one device",
                .variables = Variables::kDevice,
                .collectives = kLocal,
                .one_replica = "--strategy one-device has one replica; choose --strategy mirrored",
                .make = make_one_device},
    StrategyRow{.name = kMirrored,
                .help = "replicas of this process, each with a copy of the variables",
                .title = "Sync, one process",
                .short_name = "mirrored",
                .variables = Variables::kCopies,
                .collectives = kInOneProcess,
                .make = make_mirrored},
    StrategyRow{.name = kMultiWorkerMirrored,
                .help = "replicas of several processes, each with a copy of the variables",
                .title = "Sync, all-reduce",
                .short_name = "all-reduce",
                .tasks = Tasks::kMany,
                .variables = Variables::kCopies,
                .collectives = kEvery,
                .collectives_of_tasks = kEvery,
                .make = make_multi_worker_mirrored},
    StrategyRow{.name = "local-sgd",
                .help =
                    "replicas of several processes that train --sync-every steps each, and then "
                    "exchange what they learned",
                .title = "Local updates",
                .short_name = "local updates",
                .tasks = Tasks::kMany,
                .variables = Variables::kCopies,
                .collectives = kOnHost,
                .collectives_of_tasks = kOnHost,
                .has_rounds = true,
                .make = make_local_sgd},
    StrategyRow{.name = "central-storage",
                .help = "replicas of this process on one copy in host memory",
                .title = "Sync, central storage",
                .short_name = "central storage",
                .variables = Variables::kHost,
                .collectives = kLocal,
                .make = make_central_storage},
    StrategyRow{
        .name = "pipeline",
        .help = "stages of one network, each on a device of this process or in a task of its own",
        .title = "Pipeline",
        .short_name = "pipeline",
        .tasks = Tasks::kStages,
        .variables = Variables::kStages,
        .collectives = kLocal,
        .collectives_of_tasks = kRing,
        .one_replica = "--strategy pipeline has one replica; --stages N gives it several devices",
        .make = make_pipeline},
    StrategyRow{.name = "parameter-server",
                .help = "variables on servers, synchronous or asynchronous workers",
                .title = "Sync, servers",
                .short_name = "sync",
                .tasks = Tasks::kWithServers,
                .variables = Variables::kServers,
                .collectives = kLocal,
                .collectives_of_tasks = kLocal,
                .one_replica =
                    "a worker of --strategy parameter-server has one replica; start more workers",
                .consistency = ps::Consistency::kAsync,
                .make = make_parameter_server},
};

}  // namespace

std::span<const StrategyRow> strategies() noexcept { return kStrategies; }

const StrategyRow* find_strategy(std::string_view name) noexcept {
  const auto* const row = std::ranges::find(kStrategies, name, &StrategyRow::name);
  return row == kStrategies.end() ? nullptr : row;
}

const StrategyRow& row_of(const StrategyOptions& options) {
  if (const StrategyRow* const row = find_strategy(options.name)) return *row;
  throw UsageError(fmt::format("--strategy {}: no such strategy in this build; choose one of {}",
                               options.name, fmt::join(names_of(strategies()), ", ")));
}

bool StrategyRow::takes_collective(std::string_view collective, int number_of_tasks) const {
  if (collective == "auto") return true;
  const std::span<const std::string_view> allowed = collectives_for(number_of_tasks);
  return std::ranges::find(allowed, collective) != allowed.end();
}

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, const Graph& graph) {
  const StrategyRow& row = row_of(options);
  const int tasks =
      options.membership == nullptr ? 1 : static_cast<int>(options.membership->members().size());
  if (tasks > 1 && row.tasks == Tasks::kOne) {
    throw UsageError(
        fmt::format("--strategy {} runs in one process, and this job has {} tasks; choose {}",
                    row.name, tasks, kMultiWorkerMirrored));
  }
  if (options.replicas < 1) {
    throw UsageError(fmt::format("--replicas {}: expected at least 1", options.replicas));
  }
  if (options.replicas > 1 && !row.has_replicas()) {
    throw UsageError(fmt::format("--replicas {}: {}", options.replicas, row.one_replica));
  }
  if (!row.takes_collective(options.collective, tasks)) {
    throw UsageError(fmt::format(
        "--collective {}: --strategy {} in a job of {} task{} takes auto, {}; omit --collective",
        options.collective, row.name, tasks, tasks == 1 ? "" : "s",
        fmt::join(row.collectives_for(tasks), ", ")));
  }
  return row.make(options, graph);
}

std::vector<std::string> Strategy::slots_to_save() {
  std::vector<std::string> names;
  for (const Snapshot::Slot& slot : snapshot().slots) names.push_back(slot.name);
  return names;
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
