// Where the time of each worker went, where all keep step: gathered once, when training has ended.
// Used by train_loop.cc; workers that keep no step write their own (asynchronous_loop.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/strategy.h"
#include "worker/train/metrics.h"

namespace syncopate {

// One thread only. The strategy outlives it.
class WorkerTimes {
 public:
  // What was done before is not counted.
  explicit WorkerTimes(Strategy& strategy);

  struct Totals {
    std::int64_t steps = 0;
    std::int64_t samples = 0;  // of all replicas
    double seconds = 0.0;      // in steps
    double input_wait_seconds = 0.0;
  };
  // Every task calls; each writes a line for every worker there is.
  void write(const Totals& totals, MetricsWriter& metrics) const;
  // Of the steps since it was made, this task's first replica stood so long for others.
  double exposed_seconds() const;

 private:
  Strategy& strategy_;
  std::vector<CommunicationTimes> at_start_;  // by replica of this task
};

}  // namespace syncopate
