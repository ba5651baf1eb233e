// Simulates when the updates of a job happen and how stale they are, without values and gradients.
// Compute delays, links and synchronous steps come from the virtual clock (time_model.h,
// step_times.h). For async, ssp and backup workers, one ps::SharedBucket per bucket decides
// which gradients are applied and which workers wait. Simulating thousands of workers takes
// seconds. The simulated times of a small job equal the times that train_virtually() gives. Called
// by `plan`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/fault_injection.h"
#include "bench/virtual_clock/pipeline_times.h"
#include "bench/virtual_clock/time_model.h"
#include "bench/virtual_clock/timed_buckets.h"
#include "ps/shard/consistency.h"

namespace syncopate::bench {

struct TimingOptions {
  std::string strategy;  // name of the strategy, for error messages
  int workers = 1;
  ps::ConsistencyOptions consistency;
  TimedBuckets buckets;   // at least one; a gradient has as many bytes as the values
  FaultInjection faults;  // compute delays, slow workers, pauses, link, speed of servers
  // The steps in a round of local updates. In a synchronous job, a round of all workers is one
  // update; in any other, each displacement that a worker pushes at the end of its round is one.
  std::int64_t steps_per_exchange = 1;
  std::optional<PipelineLoad> pipeline{};  // if set, each worker computes a stage
  std::uint64_t seed = 1;
  // The smallest number of gradients to simulate, over all workers. More gradients are simulated if
  // each worker would otherwise compute too few of them.
  std::int64_t gradients = 200'000;
};

struct TimingResult {
  std::int64_t updates = 0;  // number of updates after the warm-up
  double updates_per_second = 0.0;
  // The mean number of gradients in an update, without dropped gradients.
  double gradients_per_update = 1.0;
  // The standard error of updates_per_second divided by updates_per_second, estimated from ten
  // parts of the run.
  double relative_error = 0.0;
  double staleness_mean = 0.0;  // in updates, mean over all servers
  std::int64_t staleness_max = 0;
  // The fractions of the workers' time, with a sum of 1.
  double compute_share = 0.0;
  double communication_share = 0.0;
  double peers_share = 0.0;
  double server_share = 0.0;  // waiting for the updates of servers

  double gradients_per_second() const noexcept { return updates_per_second * gradients_per_update; }
};

// Simulates a job. The result depends only on the options. Throws UsageError if the options
// contradict each other.
TimingResult simulate_timing(const TimingOptions& options);

}  // namespace syncopate::bench
