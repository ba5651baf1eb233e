// The variables that Open MPI's mpirun sets for its processes.
#include "strategies/cluster/resolvers.h"
#include "strategies/cluster/source_variables.h"

namespace syncopate {

std::optional<ClusterSpec> resolve_open_mpi(const ClusterFlags& /*unused*/,
                                            const Environment& environment, Notes& notes) {
  if (!has_all(environment, "Open MPI", {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, notes)) {
    return std::nullopt;
  }
  ClusterSpec spec;
  spec.index = number_of(environment, "OMPI_COMM_WORLD_RANK", 0, kMostTasks, 0);
  spec.world_size = number_of(environment, "OMPI_COMM_WORLD_SIZE", 1, kMostTasks, 1);
  require_below("OMPI_COMM_WORLD_RANK", spec.index, "OMPI_COMM_WORLD_SIZE", spec.world_size);
  spec.local_rank = number_of(environment, "OMPI_COMM_WORLD_LOCAL_RANK", 0, kMostTasks, 0);
  spec.local_size =
      number_of(environment, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, kMostTasks, spec.local_rank + 1);
  require_below("OMPI_COMM_WORLD_LOCAL_RANK", spec.local_rank, "OMPI_COMM_WORLD_LOCAL_SIZE",
                spec.local_size);
  // Open MPI tells no address to meet at; `syncopate launch` adds one when it runs mpirun.
  if (const auto rendezvous = filled(environment, "SYNCOPATE_RENDEZVOUS")) {
    spec.rendezvous = parse_endpoint(*rendezvous, "SYNCOPATE_RENDEZVOUS");
    spec.nonce = filled(environment, "SYNCOPATE_NONCE").value_or("");
  }
  return spec;
}

}  // namespace syncopate
