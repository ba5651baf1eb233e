// Checks the flags of fault injection: slow links and compute delays.
#pragma once

#include "deploy/cli/flag_set.h"
#include "worker/run/train_options.h"

namespace syncopate {

// With a slow link, --transport auto means TCP. Throws UsageError if the strategy has no link that
// could be slowed.
void check_link(const FlagSet& flags, StrategyOptions& options);

// Completes options.loop.service_time; options.cluster must be filled before. Throws UsageError,
// unless the number of replicas follows from the GPUs, for a worker that the job does not have.
void check_compute_delays(TrainOptions& options);

}  // namespace syncopate
