// Determines the job of this process, and which task of the job the process is. resolve_cluster()
// asks one resolver per source (flags, launchers, batch systems) in order of precedence. Resolvers
// read flags and environment variables; they never use the network.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/environment.h"
#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// The cluster flags of the command line. Flags with --rank take precedence over every other source.
// Flags without --rank complete the result of another source, or are checked against it.
struct ClusterFlags {
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<int> servers;
  std::string rendezvous;  // "host:port", or "host" if the source provides a port
  std::string nonce;
  std::optional<Role> role;           // the role of the command that was started
  std::optional<bool> wants_servers;  // whether the strategy needs servers; absent if not known
};

// One line for each source that was not used. A source is one description of the cluster: the
// flags, or the environment variables of one launcher.
using Notes = std::vector<std::string>;

struct ResolverRow {
  std::string_view name;  // the source's name, such as "torchrun"
  std::string_view help;
  // Returns the cluster spec that this source (flags or a launcher's variables) describes; the
  // caller sets ClusterSpec::source. Returns nullopt if the source's flags or variables are not
  // set. If only some of them are set, returns nullopt and adds a note. Throws UsageError if the
  // variables are wrong.
  std::optional<ClusterSpec> (*resolve)(const ClusterFlags&, const Environment&, Notes&);
};
// All resolvers in order of precedence: flags, launch, torchrun, TF_CONFIG, Open MPI, PMI, MVAPICH,
// JSM, Slurm, Horovod, PyTorch.
std::span<const ResolverRow> resolvers() noexcept;

// Returns the cluster as described by the first complete source (flags or a launcher's variables).
// Adds a note for each later source. If the first source does not say the place of this task on its
// host, the place comes from a later source that gives the same task index and job size. Throws
// UsageError if
// - a source before the first complete source is wrong,
// - the chosen source is not the flags and says that the job has one task, but another complete
//   source says that the job has several tasks (each task would then train alone),
// - flags without a rank contradict the chosen source.
ClusterSpec resolve_cluster(const ClusterFlags& flags, const Environment& environment);

// The functions in the table resolvers(). resolve_flags() returns nullopt if --rank is not given.
std::optional<ClusterSpec> resolve_flags(const ClusterFlags&, const Environment&, Notes&);
// Reads the variables SYNCOPATE_*, which `syncopate launch` sets.
std::optional<ClusterSpec> resolve_launch(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_torchrun(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_tf_config(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_open_mpi(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_pmi(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_mvapich(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_jsm(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_slurm(const ClusterFlags&, const Environment&, Notes&);
std::optional<ClusterSpec> resolve_horovod(const ClusterFlags&, const Environment&, Notes&);
// Reads torchrun's variables except LOCAL_RANK, as Kubernetes' PyTorchJob and scripts set them.
std::optional<ClusterSpec> resolve_pytorch(const ClusterFlags&, const Environment&, Notes&);

// Throws UsageError when some but not all of --rank, --world-size and --rendezvous are given, and
// no other source completes them.
void require_all_or_none(const ClusterFlags&);
// Applies flags without --rank to the result of another source. --rendezvous and --nonce replace
// the values of the source. Throws UsageError if a number or the role differs between flags and
// source.
void complete(ClusterSpec&, const ClusterFlags&);

}  // namespace syncopate
