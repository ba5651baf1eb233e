// The input of a run under the virtual clock, and the plan that follows from it.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/harness/fault_injection.h"
#include "bench/virtual_clock/event_queue.h"
#include "bench/virtual_clock/pipeline_times.h"
#include "bench/virtual_clock/timed_buckets.h"
#include "models/graph/graph.h"
#include "models/optim/schedule.h"
#include "ps/shard/placement.h"
#include "strategies/strategy.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"
#include "worker/run/train_options.h"
#include "worker/train/train_loop.h"

namespace syncopate::bench {

// The input of a run under the virtual clock.
struct VirtualRun {
  // The options of `train`. Cluster, replicas, service times and checkpoints are ignored. A number
  // of lanes of 0 means 1.
  const TrainOptions& options;
  int workers = 1;  // for a pipeline: its stages
  int servers = 0;  // number of parameter servers; 0 means 1
  const DataSplits& data;
  const Graph& graph;
  FaultInjection faults;
};

// What follows from the input of a virtual run: the workers, the batches and the placement of
// variables.
struct VirtualPlan {
  StrategyOptions strategy;  // including lanes and batch size per replica
  TrainLoopOptions loop;
  InputOptions input;  // batch_size is per step if synchronous, otherwise per worker
  Schedule schedule;
  bool is_synchronous = true;
  int workers = 1;  // workers that train from the start
  int places = 1;   // 1 + the largest worker number, including workers that join later
  std::int64_t dataset_size = 0;
  const Dataset* final_test = nullptr;  // TrainingRun::final_test
  // For a pipeline: the work and the messages of its stages in a step; `workers` is then 1. Empty
  // for other strategies.
  std::optional<PipelineLoad> pipeline;
  ps::Placement placement;  // of the variables, on at least one server
  // The buckets that are sent. They have servers if values come from servers or from a shard in
  // host memory.
  TimedBuckets buckets;
  // The buckets of the steps that sum gradients before the first round; empty without such steps.
  TimedBuckets summed_buckets{};

  // Returns the number of simulated tasks: workers, or the stages of a pipeline.
  int tasks() const noexcept { return pipeline ? pipeline->stages() : workers; }
  std::int64_t batch() const noexcept { return input.batch_size; }
  std::int64_t batches_per_epoch() const noexcept { return dataset_size / batch(); }
  bool has_rounds() const { return row_of(strategy).has_rounds; }
  // Returns the number of steps in a round. In a job without rounds, workers exchange gradients in
  // every step.
  std::int64_t steps_per_exchange() const { return has_rounds() ? strategy.local.sync_every : 1; }
  // Returns the format, f32 or bf16, of the values that workers receive and compute with.
  ps::ValuesFormat values_format() const noexcept {
    return ps::values_format(strategy.parameter_server.compression);
  }
  // Returns whether --max-seconds have passed. Workers then complete their current step and begin
  // no other step.
  bool is_time_up(VirtualTime now) const noexcept {
    return loop.max_seconds > 0.0 && seconds_of(now) >= loop.max_seconds;
  }
};

// Plans a virtual run. Throws UsageError for flags and faults that contradict each other.
VirtualPlan plan_of(const VirtualRun& run);

}  // namespace syncopate::bench
