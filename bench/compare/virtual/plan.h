// What follows from a virtual run's flags: who takes part, how large batches are, how variables lie
// on servers.
#pragma once

#include <cstdint>
#include <string>

#include "bench/compare/virtual/event_queue.h"
#include "bench/compare/virtual/train.h"
#include "models/optim/schedule.h"
#include "ps/shard/placement.h"
#include "strategies/strategy.h"
#include "worker/input/batch_source.h"
#include "worker/train/train_loop.h"

namespace syncopate::bench {

struct VirtualPlan {
  StrategyOptions strategy;  // lanes and the largest share of a replica are decided
  TrainLoopOptions loop;
  InputOptions input;  // batch_size: of a step where workers keep step, else of each worker's
  Schedule schedule;
  bool in_step = true;
  bool has_servers = false;  // values come from servers, be they only in the machine's memory
  int workers = 1;           // from the start
  int places = 1;            // numbers of workers, those that join later included
  std::int64_t dataset_size = 0;
  ps::Placement placement;  // on one server or more

  std::int64_t batch() const noexcept { return input.batch_size; }
  std::int64_t batches_per_epoch() const noexcept { return dataset_size / batch(); }
  int servers() const noexcept;
  // --max-seconds: who is in a step ends it, and nobody begins another one.
  bool is_time_up(VirtualTime now) const noexcept {
    return loop.max_seconds > 0.0 && seconds_of(now) >= loop.max_seconds;
  }
};

// Throws UsageError for flags and troubles that have no meaning together.
VirtualPlan plan_of(const VirtualRun& run);

}  // namespace syncopate::bench
