// Training under a virtual clock: any number of workers, servers and links in one process and one
// thread. Shard, consistency rule and optimizer are the code of real servers, batches are assigned
// as in a real job, and every gradient is computed. Only time is simulated: the time of a step is
// drawn, the time of a message is computed. A run is equal, bit for bit, on every machine with the
// same instruction set, under any load. Called by `compare`.
//
// A synchronous job trains the same shares of a global batch, sums the gradients in the same order
// and makes the same updates as the real strategy, so the weights are equal bit for bit.
// Asynchronous jobs (virtual_asynchronous_job.h) give one of the orders that a real job can have:
// events at the same time are ordered by worker, and a worker leases its next batch when it has the
// values for it.
#pragma once

#include <functional>
#include <span>

#include "bench/virtual_clock/virtual_plan.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {

// Trains, and writes the lines that `train` writes, with virtual seconds. Returns the summary,
// which is the last line. Evaluations take no time. Memory is not measured: peak_memory_bytes is 0.
// Compute and communication times of step lines and of the summary are means over the workers.
// progress is called with the fraction of the batches that are trained; it may be empty.
// Throws UsageError for contradictory flags, PeerError if a kill ends the job, DivergenceError.
Summary train_virtually(const VirtualRun& run, MetricsWriter& metrics,
                        const std::function<void(double fraction)>& progress);

// Another cluster. The steps of a run take other times there.
struct OtherTimes {
  const FaultInjection& faults;
  MetricsWriter& metrics;
};
// Trains as train_virtually() does, and writes the lines of the same run in other clusters to their
// metrics. The run is synchronous without backup workers, so its weights are the same in each.
Summary train_in_clusters(const VirtualRun& run, MetricsWriter& metrics,
                          std::span<const OtherTimes> others,
                          const std::function<void(double fraction)>& progress);

}  // namespace syncopate::bench
