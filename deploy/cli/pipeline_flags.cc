// Checks that the flags of `train --strategy pipeline` fit together. check_cluster() calls it when
// the tasks of the job are known.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>

#include "deploy/cli/strategy_flags.h"
#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "worker/run/run_sizes.h"

namespace syncopate {
namespace {

void take_stages(const FlagSet& flags, TrainOptions& options) {
  StrategyOptions& strategy = options.strategy;
  const int tasks = options.cluster.world_size;
  const int of_cut = static_cast<int>(strategy.cut.size()) + 1;
  const int stages = flags.has("--cut") ? of_cut : tasks > 1 ? tasks : strategy.stages;
  if (flags.has("--stages") && strategy.stages != stages) {
    throw UsageError(flags.has("--cut")
                         ? fmt::format("--stages {}: --cut gives {} stages; leave --stages out",
                                       strategy.stages, of_cut)
                         : fmt::format("--stages {}: {} started {} tasks, and each is one stage; "
                                       "leave --stages out, or start {} tasks",
                                       strategy.stages, options.cluster.source, tasks,
                                       strategy.stages));
  }
  if (tasks > 1 && stages != tasks) {
    throw UsageError(
        fmt::format("--cut {}: gives {} stages, and {} started {} tasks, each of which is one "
                    "stage; give {} node{}, or start {} tasks",
                    fmt::join(strategy.cut, ","), of_cut, options.cluster.source, tasks, tasks - 1,
                    tasks == 2 ? "" : "s", of_cut));
  }
  strategy.stages = stages;
  const CpuLimits cpus = cpu_limits();
  const bool is_on_gpus = strategy.devices.front().kind == DeviceKind::kCuda;
  if (tasks > 1 || is_on_gpus || options.shares_devices) return;
  if (stages > cpus.usable()) {
    throw UsageError(
        fmt::format("--stages {}: this process may use {}, and stages that share one do not "
                    "compute at the same time; give fewer, or add --share-devices if that is meant",
                    stages, describe(cpus)));
  }
}

// Refuses collectives that do not carry hand-overs from stage to stage.
void check_collective(const TrainOptions& options) {
  const std::string& collective = options.strategy.collective;
  const int tasks = options.cluster.world_size;
  if (strategy_of(options).takes_collective(collective, tasks)) return;
  throw UsageError(
      fmt::format("--collective {}: the stages of --strategy pipeline {}; leave it out", collective,
                  tasks > 1 ? "hand micro-batches over by shared memory and TCP, between CPUs"
                            : "are in one process here"));
}

// Refuses flags of links between tasks where the job has one task.
void check_links(const TrainOptions& options) {
  const StrategyOptions& strategy = options.strategy;
  if (options.cluster.world_size > 1) return;
  if (strategy.transport == Transport::kAuto && strategy.link.is_plain()) return;
  throw UsageError(fmt::format(
      "{}: the stages of --strategy pipeline are in one process here; leave it out, or "
      "start several: syncopate launch --workers {} -- train ...",
      strategy.link.is_plain() ? "--transport" : "--link-delay and --link-rate", strategy.stages));
}

// Refuses a step that cannot fill its micro-batches: empty ones take as long to hand over, and
// stages would wait for them.
void check_micro_batches(const TrainOptions& options) {
  const int micro_batches = options.strategy.micro_batches;
  const std::int64_t samples = options.global_batch_size;
  if (samples == 0 || micro_batches <= samples) return;
  throw UsageError(fmt::format(
      "--accumulate {0}: a step of --batch-size {1} has {1} sample{2}, fewer than micro-batches; "
      "give at most --accumulate {1}, or a larger --batch-size",
      micro_batches, samples, samples == 1 ? "" : "s"));
}

// A delay is slept once in each step, but a step of a stage is its part of several micro-batches.
void refuse_delays(const FlagSet& flags) {
  for (const char* flag : {"--service-time", "--slow", "--pause"}) {
    if (!flags.has(flag)) continue;
    throw UsageError(fmt::format(
        "{}: delays whole steps, and a stage of --strategy pipeline computes parts of them; leave "
        "it out, or simulate it with syncopate-bench compare --clock virtual",
        flag));
  }
}

}  // namespace

void check_pipeline(const FlagSet& flags, TrainOptions& options) {
  if (!has_stages(options)) return;
  take_stages(flags, options);
  check_collective(options);
  check_links(options);
  check_micro_batches(options);
  refuse_delays(flags);
}

}  // namespace syncopate
