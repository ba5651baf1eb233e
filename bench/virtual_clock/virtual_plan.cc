#include "bench/virtual_clock/virtual_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/base/errors.h"
#include "worker/run/run_sizes.h"

namespace syncopate::bench {
namespace {

constexpr int kMostWorkers = 1 << 16;

void check_workers(const VirtualRun& run, const VirtualPlan& plan) {
  if (run.workers < 1 || run.workers > kMostWorkers) {
    throw UsageError(fmt::format("--workers {}: expected 1 to {}", run.workers, kMostWorkers));
  }
  if (row_of(plan.strategy).is_alone() && run.workers != 1) {
    throw UsageError(
        fmt::format("--workers {}: --strategy {} has one worker", run.workers, plan.strategy.name));
  }
  if (plan.strategy.consistency.quorum > run.workers) {
    throw UsageError(fmt::format("--quorum {}: expected at most the {} workers",
                                 plan.strategy.consistency.quorum, run.workers));
  }
  if (plan.strategy.consistency.backup_workers >= run.workers) {
    throw UsageError(fmt::format("--backup-workers {}: expected fewer than the {} workers",
                                 plan.strategy.consistency.backup_workers, run.workers));
  }
}

// The exchange of a round begins when the last step has computed. With --inner-state average,
// workers also sum the slots of their optimizers.
void prepare_for_rounds(const StrategyOptions& strategy, TimedBuckets& buckets) {
  buckets.profile.complete_at_end();
  if (strategy.local.inner_state != InnerState::kAverage) return;
  const auto slots = std::ssize(make_optimizer(strategy.optimizer)->slot_names());
  for (std::int64_t& bytes : buckets.bytes) bytes *= 1 + slots;
}

void check_faults(const FaultInjection& faults, const VirtualPlan& plan) {
  for (const Join& join : faults.joins) {
    if (plan.strategy.consistency.consistency == ps::Consistency::kSync) {
      throw UsageError(
          fmt::format("--join worker={}: --strategy {} waits for a fixed number of workers; choose "
                      "--consistency "
                      "async or ssp",
                      join.worker, plan.strategy.name));
    }
    if (join.worker < 0 || join.worker >= kMostWorkers || !(join.at_seconds >= 0.0)) {
      throw UsageError(
          fmt::format("--join worker={}: expected a worker from 0 to {} and a time of at least 0",
                      join.worker, kMostWorkers - 1));
    }
  }
  const bool is_one_process = row_of(plan.strategy).tasks == StrategyRow::Tasks::kOne;
  if (!faults.kills.empty() && is_one_process && !plan.is_synchronous) {
    throw UsageError(fmt::format(
        "--kill: --strategy {} is one process, which loses its variables with a worker, and the "
        "virtual clock cannot restore earlier ones of an asynchronous job; choose parameter-server "
        "or --clock real",
        plan.strategy.name));
  }
  for (const Kill& kill : faults.kills) {
    if (kill.worker < 0 || kill.worker >= plan.places || !(kill.at_seconds >= 0.0)) {
      throw UsageError(
          fmt::format("--kill worker={}: expected a worker from 0 to {} and a time of at least 0",
                      kill.worker, plan.places - 1));
    }
  }
}

}  // namespace

VirtualPlan plan_of(const VirtualRun& run) {
  TrainOptions options = run.options;
  options.strategy.replicas = 1;
  options.strategy.membership = nullptr;
  options.cluster.world_size = run.workers;
  if (options.strategy.lanes < 1) options.strategy.lanes = 1;
  const bool synchronous = is_synchronous(options.strategy.consistency);
  const StrategyRow& row = strategy_of(options);
  options.strategy.parameter_server.cluster.world_size = run.workers;
  if (has_rounds(options)) check_local_updates(options.strategy);
  const int replicas = synchronous && !row.has_stages() ? run.workers : 1;
  const std::int64_t dataset_size = run.data.train->size();
  StrategyOptions strategy = options.strategy;
  const std::int64_t batch = choose_batch(options, std::max(replicas, 1), dataset_size, strategy);
  require_batch_norm_values(run.graph, options, std::max(replicas, 1), batch);
  VirtualPlan plan{
      .strategy = strategy,
      .loop = options.loop,
      .input = options.input,
      .schedule = Schedule(schedule_of(options, replicas, batch, dataset_size / batch)),
      .is_synchronous = synchronous,
      .workers = row.has_stages() ? 1 : run.workers,
      .places = places_of(run.workers, run.faults.joins),
      .dataset_size = dataset_size,
      .final_test = run.data.validation != nullptr ? run.data.test.get() : nullptr,
      .placement = ps::place_variables(
          run.graph.parameter_layout(),
          {.servers = row.has_servers() ? std::max(1, run.servers) : 1,
           .partition = strategy.parameter_server.partition,
           .message_bytes = std::min(strategy.bucket_bytes, ps::kMessageBytes)})};
  // One replica needs no shard: central storage then keeps its variables on the device.
  if (row.has_servers() || (row.shares_variables() && (!synchronous || run.workers > 1))) {
    plan.buckets =
        served_buckets(run.graph, plan.placement, plan.values_format(), strategy.micro_batches);
    if (strategy.clip_norm > 0.0) plan.buckets.profile.complete_at_end();
  } else {
    plan.buckets = reduced_buckets(run.graph, strategy.bucket_bytes, strategy.micro_batches);
    if (strategy.local.local_from) plan.summed_buckets = plan.buckets;
    if (row.has_rounds) prepare_for_rounds(strategy, plan.buckets);
  }
  if (row.has_stages()) {
    const std::vector<Stage> stages = choose_stages(run.graph, run.workers, strategy.cut,
                                                    fmt::format("--workers {}", run.workers));
    plan.pipeline = load_of(stages, strategy.micro_batches, micro_batch_size(strategy));
  }
  plan.input.batch_size = batch;
  plan.input.seed = strategy.seed;
  plan.input.shard = {};
  check_workers(run, plan);
  check_faults(run.faults, plan);
  return plan;
}

}  // namespace syncopate::bench
