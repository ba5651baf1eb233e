// The time that a step computes under the virtual clock: the random delays of
// worker/train/service_time.h, and pauses in virtual time.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/compare/virtual/event_queue.h"
#include "bench/harness/fault_injection.h"
#include "worker/train/service_time.h"

namespace syncopate::bench {

// Draws the compute time of each step. Each pause is used by the first step that it delays. A copy
// keeps the state at the time of copying.
class ComputeDelays {
 public:
  // Combines the slow workers and pauses of `faults` with those of its service_time. Throws
  // UsageError if a step would take no time, because then the whole run would happen at once.
  ComputeDelays(const FaultInjection& faults, std::uint64_t seed);

  // Returns the time of the worker's `step`-th step, which begins now: the measured computation,
  // the random delay and the pauses that are due.
  VirtualTime take(int worker, std::int64_t step, VirtualTime now);

 private:
  VirtualTime compute_of(int worker) const;

  ServiceTimeOptions options_;  // Has no pauses.
  double compute_seconds_;
  std::vector<Pause> pauses_;  // not used up yet
};

}  // namespace syncopate::bench
