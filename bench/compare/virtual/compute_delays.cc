#include "bench/compare/virtual/compute_delays.h"

#include "models/base/errors.h"

namespace syncopate::bench {

ComputeDelays::ComputeDelays(const FaultInjection& faults, std::uint64_t seed)
    : options_(faults.service_time),
      compute_seconds_(faults.compute_seconds),
      pauses_(faults.service_time.pauses) {
  const bool draws = options_.kind != ServiceTimeKind::kNone && options_.mean_milliseconds > 0.0;
  if (!draws && !(compute_seconds_ > 0.0)) {
    throw UsageError(
        "the virtual clock needs the compute delay of a step; give --service-time, such as "
        "--service-time exponential:5");
  }
  options_.seed = seed;
  options_.pauses.clear();
  options_.slow.insert(options_.slow.end(), faults.slow.begin(), faults.slow.end());
  pauses_.insert(pauses_.end(), faults.pauses.begin(), faults.pauses.end());
}

VirtualTime ComputeDelays::compute_of(int worker) const {
  double seconds = compute_seconds_;
  for (const Slowness& slow : options_.slow) {
    if (slow.worker == worker) seconds *= slow.factor;
  }
  return virtual_time(seconds);
}

VirtualTime ComputeDelays::take(int worker, std::int64_t step, VirtualTime now) {
  VirtualTime time = compute_of(worker) + service_time(options_, worker, step);
  std::erase_if(pauses_, [&](const Pause& pause) {
    if (pause.worker != worker || pause.at_seconds > seconds_of(now)) return false;
    time += virtual_time(pause.for_seconds);
    return true;
  });
  return time;
}

}  // namespace syncopate::bench
