// The input of a run under the virtual clock, and the plan that follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/harness/fault_injection.h"
#include "bench/virtual_clock/event_queue.h"
#include "bench/virtual_clock/pipeline_times.h"
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
  // The options of `train`. Cluster, replicas, service times and checkpoints are ignored; lanes 0
  // stands for 1.
  const TrainOptions& options;
  int workers = 1;  // stages, of a pipeline
  int servers = 0;  // number of parameter servers; 0 stands for 1
  const DataSplits& data;
  const Graph& graph;
  FaultInjection faults;
};

// What follows from the flags of a virtual run: the workers, the batches, the placement of
// variables.
struct VirtualPlan {
  StrategyOptions strategy;  // with the lanes and the batch size per replica
  TrainLoopOptions loop;
  InputOptions input;  // batch_size: per step if synchronous, else per worker
  Schedule schedule;
  bool is_synchronous = true;
  bool has_servers = false;  // values come from servers or from a shard in host memory
  int workers = 1;           // workers that train from the start
  int places = 1;            // 1 + the largest worker number, including workers that join later
  std::int64_t dataset_size = 0;
  const Dataset* final_test = nullptr;   // as in TrainingRun
  std::optional<PipelineLoad> pipeline;  // the stages of the only worker
  ps::Placement placement;               // placement of the variables on at least one server

  // The number of tasks that take time: workers, or stages.
  int tasks() const noexcept { return pipeline ? pipeline->stages() : workers; }
  std::int64_t batch() const noexcept { return input.batch_size; }
  std::int64_t batches_per_epoch() const noexcept { return dataset_size / batch(); }
  int servers() const noexcept;
  // The format of the values that workers compute with.
  ps::ValuesFormat values_format() const noexcept {
    return ps::values_format(strategy.parameter_server.compression);
  }
  // Whether --max-seconds is over: workers complete their current step and begin no other.
  bool is_time_up(VirtualTime now) const noexcept {
    return loop.max_seconds > 0.0 && seconds_of(now) >= loop.max_seconds;
  }
};

// Plans a virtual run. Throws UsageError for flags and faults that contradict each other.
VirtualPlan plan_of(const VirtualRun& run);

}  // namespace syncopate::bench
