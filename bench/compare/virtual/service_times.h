// How long workers compute under the virtual clock: draws of worker/train/service_time.h, and
// pauses in virtual time.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/compare/virtual/event_queue.h"
#include "bench/harness/fault_injection.h"
#include "worker/train/service_time.h"

namespace syncopate::bench {

// Copying it remembers a moment: pauses are used up.
class ServiceTimes {
 public:
  // Slow workers and pauses are the trouble's and those of its service_time together. Throws
  // UsageError when no time is said: without one, all of a run would happen at once.
  ServiceTimes(const Trouble& trouble, std::uint64_t seed);

  // Of the worker's `step`-th step, which begins now: the trouble's compute_seconds, its draw, and
  // the pauses that are due.
  VirtualTime take(int worker, std::int64_t step, VirtualTime now);

 private:
  VirtualTime compute_of(int worker) const;

  ServiceTimeOptions options_;  // without pauses
  double compute_seconds_;
  std::vector<Pause> pauses_;  // ahead
};

}  // namespace syncopate::bench
