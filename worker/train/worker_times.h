// The times of all synchronous workers, gathered once when training has ended. Used by
// train_loop.cc; the workers of an asynchronous job write their own times (asynchronous_loop.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/strategy.h"
#include "worker/train/metrics.h"

namespace syncopate {

// One thread only. The strategy must outlive it.
class WorkerTimes {
 public:
  // Only steps after construction are counted.
  explicit WorkerTimes(Strategy& strategy);

  struct Totals {
    std::int64_t steps = 0;
    std::int64_t samples = 0;  // of all replicas
    double seconds = 0.0;      // in steps
    double input_wait_seconds = 0.0;
  };
  // Every task calls it. Writes a line for each worker of the job.
  void write(const Totals& totals, MetricsWriter& metrics) const;
  // Seconds that the first replica of this task waited for other replicas since construction.
  double exposed_seconds() const;

 private:
  Strategy& strategy_;
  std::vector<CommunicationTimes> at_start_;  // by replica of this task
};

}  // namespace syncopate
