// Checks the flags of `syncopate train` about the strategy: its devices, the other tasks and the
// consistency of shared variables. Resolves the cluster from the flags and the environment.
#pragma once

#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Adds --rank, --world-size, --servers, --rendezvous, --nonce and --role. resolve_cluster() decides
// what they mean together. --local-rank is accepted and ignored.
void add_cluster_flags(FlagSet& flags, ClusterFlags& cluster);

// Fills options.cluster and what depends on it. Throws UsageError for flags that contradict each
// other or the environment.
void check_cluster(const FlagSet& flags, ClusterFlags cluster, const Environment& environment,
                   TrainOptions& options);

// Throws UsageError for options of consistency that contradict each other. The cluster must be
// known.
void check_consistency(const FlagSet& flags, TrainOptions& options);

}  // namespace syncopate
