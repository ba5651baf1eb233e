// Training under a virtual clock: any number of workers, servers and links in one process and one
// thread. Shard, consistency rule and optimizer are the code of real servers, batches are assigned
// as in a real job, and every gradient is computed. Only time is simulated: the time of a step is
// drawn at random, and the time of a message is computed. The results of a run are bit-equal on all
// machines with the same instruction set, under any load. Called by `compare`.
//
// A synchronous job divides global batches among workers, sums gradients and makes updates in the
// same way as the real strategy, so its weights are bit-equal to the weights of a real job. An
// asynchronous job (virtual_asynchronous_job.h) has one of the orders of events that a real job can
// have. Events at the same time are ordered by worker, and a worker leases its next batch when it
// has received the values for this batch.
#pragma once

#include <functional>
#include <span>

#include "bench/virtual_clock/virtual_plan.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {

// Trains, and writes the lines that `train` writes, with virtual seconds. Returns the summary,
// which is the last line. Evaluations take no time. Memory is not measured: peak_memory_bytes is 0.
// Compute and communication times in step lines and in the summary are means over the workers.
// progress: called with the fraction of the batches trained so far; may be empty.
// Throws UsageError for contradictory flags, PeerError if a kill ends the job, and DivergenceError.
Summary train_virtually(const VirtualRun& run, MetricsWriter& metrics,
                        const std::function<void(double fraction)>& progress);

// Another cluster, on which the steps of the same run take other times.
struct OtherTimes {
  const FaultInjection& faults;
  MetricsWriter& metrics;
};
// Trains as train_virtually() does. Each element of `others` describes another cluster: the lines
// that the same run writes on this cluster are written to the element's metrics. The run must be
// synchronous without backup workers, so that its weights are equal on all clusters.
Summary train_in_clusters(const VirtualRun& run, MetricsWriter& metrics,
                          std::span<const OtherTimes> others,
                          const std::function<void(double fraction)>& progress);

}  // namespace syncopate::bench
