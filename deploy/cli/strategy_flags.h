// Checks the flags of `syncopate train` for the devices, the cluster and the consistency of shared
// variables, and resolves the cluster from the flags and the environment.
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

}  // namespace syncopate
