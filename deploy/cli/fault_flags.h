// Checks the flags of fault injection: slow links and compute delays.
#pragma once

#include "deploy/cli/flag_set.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Checks the flags of slow links. If a link is slowed, sets the transport to TCP. Throws UsageError
// if the strategy, the collective or the transport has no link that can be slowed.
void check_link(const FlagSet& flags, StrategyOptions& options);

// Checks the flags --slow and --pause, which delay workers. Sets the index of the first worker of
// this task (options.loop.first_worker) and the seed of the random delays. options.cluster must be
// set before. Throws UsageError if --slow or --pause names a worker that the job does not have. If
// the number of workers follows from the visible GPUs, find_devices() checks these flags later.
void check_compute_delays(TrainOptions& options);

}  // namespace syncopate
