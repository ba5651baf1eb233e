// The flags of `syncopate-bench compare` that describe the cluster of all runs.
#pragma once

#include <string>

#include "bench/compare/cluster.h"
#include "deploy/cli/flag_set.h"

namespace syncopate::bench {

// Declares the flags, which are parsed into `cluster` and, for --slow-worker, `slow_worker`.
void declare_cluster_flags(FlagSet& flags, ClusterFlags& cluster, std::string& slow_worker);

}  // namespace syncopate::bench
