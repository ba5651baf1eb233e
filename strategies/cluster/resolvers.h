// The rows of resolvers(), one function per source. Each gives nothing when its source is absent or
// incomplete (then with a note), and throws UsageError when it is there and wrong. They fill all
// but ClusterSpec::source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

using Notes = std::vector<std::string>;

std::optional<ClusterSpec> resolve_flags(const ClusterFlags&, const Environment&, Notes&);
// SYNCOPATE_*, as `syncopate launch` sets them.
std::optional<ClusterSpec> resolve_launch(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_torchrun(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_tf_config(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_open_mpi(const ClusterFlags&, const Environment&, Notes&);
// Never gives a cluster; says so when several tasks were started.
std::optional<ClusterSpec> resolve_slurm(const ClusterFlags&, const Environment&, Notes&);

}  // namespace syncopate
