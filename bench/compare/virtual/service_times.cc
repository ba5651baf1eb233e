#include "bench/compare/virtual/service_times.h"

#include <cmath>

#include "models/base/errors.h"

namespace syncopate::bench {

ServiceTimes::ServiceTimes(const Trouble& trouble, std::uint64_t seed)
    : options_(trouble.service_time), pauses_(trouble.service_time.pauses) {
  if (options_.kind == ServiceTimeKind::kNone || !(options_.mean_milliseconds > 0.0)) {
    throw UsageError(
        "the virtual clock must be told how long a step takes; give --service-time, such as "
        "--service-time exponential:5");
  }
  options_.seed = seed;
  options_.pauses.clear();
  options_.slow.insert(options_.slow.end(), trouble.slow.begin(), trouble.slow.end());
  pauses_.insert(pauses_.end(), trouble.pauses.begin(), trouble.pauses.end());
}

VirtualTime ServiceTimes::take(int worker, std::int64_t step, VirtualTime now) {
  VirtualTime time = service_time(options_, worker, step);
  std::erase_if(pauses_, [&](const Pause& pause) {
    if (pause.worker != worker || pause.at_seconds > seconds_of(now)) return false;
    time += VirtualTime(std::llround(pause.for_seconds * 1e9));
    return true;
  });
  return time;
}

}  // namespace syncopate::bench
