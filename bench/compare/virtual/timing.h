// When a job's updates happen, and how stale they are, without training anything: no values, no
// gradients, only who waits for whom. Service times are the draws of the virtual clock, links are
// those of network.h, workers in step those of step_times.h, and what async, ssp and backup workers
// may do is decided by ps::ConsistencyRule, one per server. So a job of thousands of workers takes
// seconds, and one of a few takes the time that train_virtually says. Called by `plan`.
//
// What a server does besides sending and receiving takes no time, as under the virtual clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness/fault_injection.h"
#include "ps/shard/consistency.h"

namespace syncopate::bench {

struct TimingOptions {
  std::string strategy;  // for messages
  int workers = 1;
  bool has_servers = false;  // else a ring, in step
  ps::ConsistencyOptions consistency;
  std::vector<std::int64_t>
      server_bytes;  // of values, and of a gradient, by server; of a ring: all
  Trouble trouble;   // service times, slow workers, pauses, link
  std::uint64_t seed = 1;
  // Gradients that are simulated at least, of all workers together; more where so many would be
  // too few for each of them.
  std::int64_t gradients = 200'000;
};

struct TimingResult {
  std::int64_t updates = 0;  // that were counted: those of the beginning are not
  double updates_per_second = 0.0;
  double gradients_per_update = 1.0;  // that were summed for it: dropped ones are not in it
  // Standard error of updates_per_second over itself, from ten stretches of the run.
  double relative_error = 0.0;
  double staleness_mean = 0.0;  // version at apply minus version read, over all servers
  std::int64_t staleness_max = 0;
  // Shares of the workers' time, together 1.
  double compute_share = 0.0;
  double communication_share = 0.0;
  double peers_share = 0.0;

  double gradients_per_second() const noexcept { return updates_per_second * gradients_per_update; }
};

// A function of the options alone. Throws UsageError for what has no meaning together.
TimingResult simulate_timing(const TimingOptions& options);

}  // namespace syncopate::bench
