#include "bench/compare/virtual/service_times.h"

#include <cmath>

#include "models/base/errors.h"

namespace syncopate::bench {

ServiceTimes::ServiceTimes(const Trouble& trouble, std::uint64_t seed)
    : options_(trouble.service_time),
      compute_seconds_(trouble.compute_seconds),
      pauses_(trouble.service_time.pauses) {
  const bool draws = options_.kind != ServiceTimeKind::kNone && options_.mean_milliseconds > 0.0;
  if (!draws && !(compute_seconds_ > 0.0)) {
    throw UsageError(
        "the virtual clock must be told how long a step takes; give --service-time, such as "
        "--service-time exponential:5");
  }
  options_.seed = seed;
  options_.pauses.clear();
  options_.slow.insert(options_.slow.end(), trouble.slow.begin(), trouble.slow.end());
  pauses_.insert(pauses_.end(), trouble.pauses.begin(), trouble.pauses.end());
}

VirtualTime ServiceTimes::compute_of(int worker) const {
  double seconds = compute_seconds_;
  for (const Slowness& slow : options_.slow) {
    if (slow.worker == worker) seconds *= slow.factor;
  }
  return VirtualTime(std::llround(seconds * 1e9));
}

VirtualTime ServiceTimes::take(int worker, std::int64_t step, VirtualTime now) {
  VirtualTime time = compute_of(worker) + service_time(options_, worker, step);
  std::erase_if(pauses_, [&](const Pause& pause) {
    if (pause.worker != worker || pause.at_seconds > seconds_of(now)) return false;
    time += VirtualTime(std::llround(pause.for_seconds * 1e9));
    return true;
  });
  return time;
}

}  // namespace syncopate::bench
