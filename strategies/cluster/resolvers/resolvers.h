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

// Nothing without --rank: the other flags then complete what the environment says.
std::optional<ClusterSpec> resolve_flags(const ClusterFlags&, const Environment&, Notes&);
// Throws UsageError when flags are given that say nothing by themselves.
void require_all_or_none(const ClusterFlags&);
// Flags without --rank: another rendezvous or nonce for what another source found; a number or role
// that differs from it is a UsageError.
void complete(ClusterSpec&, const ClusterFlags&);
// SYNCOPATE_*, as `syncopate launch` sets them.
std::optional<ClusterSpec> resolve_launch(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_torchrun(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_tf_config(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_open_mpi(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_pmi(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_mvapich(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_jsm(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_slurm(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_horovod(const ClusterFlags&, const Environment&, Notes&);

}  // namespace syncopate
