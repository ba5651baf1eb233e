// Training under a virtual clock: any number of workers, servers and links in one process and one
// thread. The shard, its consistency rule and the optimizer are those of real servers, batches are
// cut and handed out as in a real job, and every gradient is computed; only time is made up: what a
// step takes is drawn, what a message takes is computed. So a run is the same, bit for bit, on
// every machine with the same instruction set, however busy. Called by `compare`.
//
// Replicas that keep step (in_step.h) give the bits of the real strategy. Those that do not
// (virtual_job.h) give one of the orders that a real job can have: ties are broken by (time,
// worker), and a worker leases its next batch when it has the values for it, none ahead.
#pragma once

#include <functional>

#include "bench/harness/fault_injection.h"
#include "deploy/cli/command_line.h"
#include "models/graph/graph.h"
#include "worker/input/dataset.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {

struct VirtualRun {
  // As for `train`; who takes part is said below. lanes 0: one. Checkpoints are not written, and
  // service times are the trouble's.
  const TrainOptions& options;
  int workers = 1;
  int servers = 0;  // parameter-server: shards; 0: one
  const DataSplits& data;
  const Graph& graph;
  Trouble trouble;
};

// Trains, and writes the lines that `train` writes, the summary that it returns included; seconds
// are virtual. Evaluations take none.
// Memory is not measured: peak_memory_bytes is 0. Compute and communication of step lines and of
// the summary are means over the workers.
// progress: hears the fraction of the batches that are trained; may be empty.
// Throws UsageError for what has no meaning, PeerError when the job cannot go on because of a kill,
// DivergenceError.
Summary train_virtually(const VirtualRun& run, MetricsWriter& metrics,
                        const std::function<void(double fraction)>& progress);

}  // namespace syncopate::bench
