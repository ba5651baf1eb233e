// The flags by which a user describes the cluster: of `train`, `doctor` and `cluster`.
#pragma once

#include "deploy/cli/flag_set.h"
#include "strategies/cluster/cluster_spec.h"
#include "strategies/cluster/resolvers/resolvers.h"

namespace syncopate {

// --rank, --world-size, --servers, --rendezvous, --nonce, --role. resolve_cluster() decides what
// they mean together. --local-rank is accepted and ignored.
void add_cluster_flags(FlagSet& flags, ClusterFlags& cluster);

}  // namespace syncopate
