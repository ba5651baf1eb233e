// Simulates when a job's updates happen and how stale they are, without values and gradients.
// Compute delays, links and synchronous steps come from the virtual clock (time_model.h,
// step_times.h); ps::ConsistencyRule, one per server, decides what async, ssp and backup workers
// may do. A job of thousands of workers takes seconds, and a small one gets the times of
// train_virtually. Called by `plan`.
//
// Unlike under the virtual clock, a server may also need time to apply gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/fault_injection.h"
#include "bench/virtual_clock/pipeline_times.h"
#include "bench/virtual_clock/time_model.h"
#include "ps/shard/consistency.h"

namespace syncopate::bench {

struct TimingOptions {
  std::string strategy;  // name of the strategy, for error messages
  int workers = 1;
  bool has_servers = false;  // false: a synchronous all-reduce
  ps::ConsistencyOptions consistency;
  // Bytes of the values, and of a gradient, by server; one element with all bytes for a ring.
  std::vector<std::int64_t> server_bytes;
  // Bytes of gradients that a server applies per second, one update at a time; 0: no limit.
  double server_bytes_per_second = 0.0;
  FaultInjection faults;                   // compute delays, slow workers, pauses, link
  std::optional<PipelineLoad> pipeline{};  // set: each of the workers computes a stage
  std::uint64_t seed = 1;
  // The least number of gradients to simulate, over all workers; more if each worker would compute
  // too few of them.
  std::int64_t gradients = 200'000;
};

struct TimingResult {
  std::int64_t updates = 0;  // The number of updates counted after the warm-up.
  double updates_per_second = 0.0;
  double gradients_per_update = 1.0;  // gradients summed per update; dropped ones do not count
  // Standard error of updates_per_second, relative to it, from ten parts of the run.
  double relative_error = 0.0;
  double staleness_mean = 0.0;  // mean over all servers
  std::int64_t staleness_max = 0;
  // Shares of the workers' time; their sum is 1.
  double compute_share = 0.0;
  double communication_share = 0.0;
  double peers_share = 0.0;
  double server_share = 0.0;  // waiting for the updates of servers

  double gradients_per_second() const noexcept { return updates_per_second * gradients_per_update; }
};

// Simulates a job by its options alone. Throws UsageError if the options contradict each other.
TimingResult simulate_timing(const TimingOptions& options);

}  // namespace syncopate::bench
