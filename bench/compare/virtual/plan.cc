#include "bench/compare/virtual/plan.h"

#include <algorithm>
#include <string>

#include "models/base/errors.h"
#include "worker/run/run_sizes.h"

namespace syncopate::bench {
namespace {

constexpr int kMostWorkers = 1 << 16;
constexpr std::int64_t kMessageBytes = std::int64_t{1} << 20;  // as parameter_server.cc has it

void check_workers(const VirtualRun& run, const VirtualPlan& plan) {
  const std::string& strategy = plan.strategy.name;
  if (run.workers < 1 || run.workers > kMostWorkers) {
    throw UsageError("--workers " + std::to_string(run.workers) + ": expected 1 to " +
                     std::to_string(kMostWorkers));
  }
  if (strategy == "one-device" && run.workers != 1) {
    throw UsageError("--workers " + std::to_string(run.workers) +
                     ": --strategy one-device has one worker");
  }
  if (plan.strategy.consistency.backup_workers >= run.workers) {
    throw UsageError("--backup-workers " +
                     std::to_string(plan.strategy.consistency.backup_workers) + ": of " +
                     std::to_string(run.workers) + " workers at least one must be waited for");
  }
  if (plan.strategy.batch_norm == BatchNormStatistics::kSync && run.workers > 1) {
    throw UsageError(
        "--batch-norm sync: virtual workers compute one after the other and have no batch in "
        "common; leave it out");
  }
}

void check_trouble(const Trouble& trouble, const VirtualPlan& plan) {
  for (const Join& join : trouble.joins) {
    if (plan.strategy.consistency.consistency == ps::Consistency::kSync) {
      throw UsageError("--join worker=" + std::to_string(join.worker) + ": --strategy " +
                       plan.strategy.name +
                       " waits for a fixed number of workers; choose --consistency async or ssp");
    }
    if (join.worker < 0 || join.worker >= kMostWorkers || !(join.at_seconds >= 0.0)) {
      throw UsageError("--join worker=" + std::to_string(join.worker) +
                       ": expected a worker and a time from 0 on");
    }
  }
  const bool is_one_process =
      plan.strategy.name != "parameter-server" && plan.strategy.name != "multi-worker-mirrored";
  if (!trouble.kills.empty() && is_one_process && !plan.in_step) {
    throw UsageError("--kill: --strategy " + plan.strategy.name +
                     " is one process, which loses its variables with a worker, and without a "
                     "common step the virtual clock cannot go back to earlier ones; choose "
                     "parameter-server or --clock real");
  }
  for (const Kill& kill : trouble.kills) {
    if (kill.worker < 0 || kill.worker >= plan.places || !(kill.at_seconds >= 0.0)) {
      throw UsageError("--kill worker=" + std::to_string(kill.worker) + ": expected one of 0 to " +
                       std::to_string(plan.places - 1) + ", at a time from 0 on");
    }
  }
}

}  // namespace

int VirtualPlan::servers() const noexcept {
  return 1 + *std::max_element(placement.owner.begin(), placement.owner.end());
}

VirtualPlan plan_of(const VirtualRun& run) {
  TrainOptions options = run.options;
  options.strategy.replicas = 1;
  options.strategy.membership = nullptr;
  options.cluster.world_size = run.workers;
  if (options.strategy.lanes < 1) options.strategy.lanes = 1;
  const bool in_step = is_synchronous(options.strategy.consistency);
  const int replicas = in_step ? run.workers : 1;
  const std::int64_t dataset_size = run.data.train->size();
  StrategyOptions strategy = options.strategy;
  const std::int64_t batch = choose_batch(options, std::max(replicas, 1), dataset_size, strategy);
  const bool serves = has_servers(options);
  VirtualPlan plan{
      .strategy = strategy,
      .loop = options.loop,
      .input = options.input,
      .schedule = Schedule(schedule_of(options, replicas, batch, dataset_size / batch)),
      .in_step = in_step,
      // With one replica the variables of central storage are on its device.
      .has_servers =
          serves || (strategy.name == "central-storage" && (!in_step || run.workers > 1)),
      .workers = run.workers,
      .places = places_of(run.workers, run.trouble.joins),
      .dataset_size = dataset_size,
      .placement =
          ps::place_variables(run.graph.parameter_layout(),
                              {.servers = serves ? std::max(1, run.servers) : 1,
                               .partition = strategy.parameter_server.partition,
                               .message_bytes = std::min(strategy.bucket_bytes, kMessageBytes)})};
  plan.input.batch_size = batch;
  plan.input.seed = strategy.seed;
  plan.input.shard = {};
  check_workers(run, plan);
  check_trouble(run.trouble, plan);
  return plan;
}

}  // namespace syncopate::bench
