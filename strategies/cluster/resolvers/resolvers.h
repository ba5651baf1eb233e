// Finds out which job this process belongs to, and which of its tasks it is. resolve_cluster() asks
// one resolver per source (flags, launchers, batch systems) in order of precedence. Resolvers read
// flags and environment variables; they never use the network.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/environment.h"
#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// The cluster flags of the command line. Flags with a rank outrank every other source. Flags
// without a rank complete what another source found, or are checked against it.
struct ClusterFlags {
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<int> servers;
  std::string rendezvous;  // "host:port"; or "host" when the source has a port of its own
  std::string nonce;
  std::optional<Role> role;           // the role of the command that was started
  std::optional<bool> wants_servers;  // whether the strategy needs servers; absent: not known
};

// One line for each source that was not used. A source is a description of the cluster: the flags
// or the environment variables of one launcher.
using Notes = std::vector<std::string>;

struct ResolverRow {
  std::string_view name;  // the source's name, such as "torchrun"
  std::string_view help;
  // Fills all of ClusterSpec but `source`. Returns nothing when the source's variables are not set,
  // and also, with a note, when some are missing. Throws UsageError when the variables are wrong.
  std::optional<ClusterSpec> (*resolve)(const ClusterFlags&, const Environment&, Notes&);
};
// All resolvers in order of precedence: flags, launch, torchrun, TF_CONFIG, Open MPI, PMI, MVAPICH,
// JSM, Slurm, Horovod, PyTorch.
std::span<const ResolverRow> resolvers() noexcept;

// Returns the cluster as the first complete source (flags or a launcher's variables) describes it.
// Each later source becomes a note. A later source adds one thing that the first one lacks: the
// place of this task on its host, if both give the task one index in a job of one size. Throws
// UsageError when
// - a source that comes before every complete one is wrong,
// - the chosen source is not the flags and says that there is one task, while another complete
//   source says that there are several (each task would train alone),
// - flags without a rank contradict the chosen source.
ClusterSpec resolve_cluster(const ClusterFlags& flags, const Environment& environment);

// The functions that resolvers() lists. resolve_flags() returns nothing without --rank.
std::optional<ClusterSpec> resolve_flags(const ClusterFlags&, const Environment&, Notes&);
// Resolves by the variables SYNCOPATE_*, which `syncopate launch` sets.
std::optional<ClusterSpec> resolve_launch(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_torchrun(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_tf_config(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_open_mpi(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_pmi(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_mvapich(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_jsm(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_slurm(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_horovod(const ClusterFlags&, const Environment&, Notes&);
// Resolves by torchrun's variables without LOCAL_RANK, as Kubernetes' PyTorchJob and scripts set
// them.
std::optional<ClusterSpec> resolve_pytorch(const ClusterFlags&, const Environment&, Notes&);

// Throws UsageError when some but not all of --rank, --world-size and --rendezvous are given, and
// no other source completes them.
void require_all_or_none(const ClusterFlags&);
// Applies flags without --rank to what another source found: --rendezvous and --nonce replace its
// values. Throws UsageError when a number or the role differs.
void complete(ClusterSpec&, const ClusterFlags&);

}  // namespace syncopate
