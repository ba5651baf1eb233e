// Checks the flags of `syncopate train` for the devices, the stages, the cluster, the consistency
// of shared variables and fault injection, and resolves the cluster from the flags and the
// environment.
#pragma once

#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Adds the flags of ClusterFlags: --rank, --world-size, --servers, --rendezvous, --nonce and
// --role. resolve_cluster() interprets them together. --local-rank is accepted and ignored.
void add_cluster_flags(FlagSet& flags, ClusterFlags& cluster);

// Sets options.cluster and the options that depend on the cluster. Throws UsageError for flags that
// contradict each other or the environment.
void check_cluster(const FlagSet& flags, ClusterFlags cluster, const Environment& environment,
                   TrainOptions& options);

// Checks the flags for the consistency of shared variables, such as --consistency and
// --staleness-rule, and completes options.strategy.consistency. Throws UsageError for flags that
// contradict each other. options.cluster must be set before.
void check_consistency(const FlagSet& flags, TrainOptions& options);

// Sets options.strategy.stages: the number of tasks if the job has several, else the number that
// --stages or --cut gives. Throws UsageError for flags that contradict this number, for flags that
// a pipeline does not use, and for flags of a pipeline under another strategy.
void check_pipeline(const FlagSet& flags, TrainOptions& options);

// Checks the flags of slow links. If a link is slowed, sets the transport to TCP. Throws UsageError
// if the strategy, the collective or the transport has no link that can be slowed.
void check_link(const FlagSet& flags, StrategyOptions& options);

// Checks the flags --slow and --pause, which delay workers. Sets the index of the first worker of
// this task (options.loop.first_worker) and the seed of the random delays. options.cluster must be
// set before. Throws UsageError if --slow or --pause names a worker that the job does not have. If
// the number of workers follows from the visible GPUs, find_devices() checks these flags later.
void check_compute_delays(TrainOptions& options);

}  // namespace syncopate
