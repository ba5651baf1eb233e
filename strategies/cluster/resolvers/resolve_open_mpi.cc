// The variables that Open MPI's mpirun sets for its processes.
#include "strategies/cluster/resolvers/launcher_numbers.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/cluster/resolvers/source_variables.h"

namespace syncopate {

std::optional<ClusterSpec> resolve_open_mpi(const ClusterFlags& /*unused*/,
                                            const Environment& environment, Notes& notes) {
  std::optional<ClusterSpec> spec = read_numbers(environment, "Open MPI",
                                                 {.rank = "OMPI_COMM_WORLD_RANK",
                                                  .size = "OMPI_COMM_WORLD_SIZE",
                                                  .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
                                                  .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                                 notes);
  if (!spec) return std::nullopt;
  // Open MPI tells no address to meet at; `syncopate launch` adds one when it runs mpirun.
  if (const auto rendezvous = filled(environment, "SYNCOPATE_RENDEZVOUS")) {
    spec->rendezvous = parse_endpoint(*rendezvous, "SYNCOPATE_RENDEZVOUS");
    spec->nonce = filled(environment, "SYNCOPATE_NONCE").value_or("");
  }
  return spec;
}

}  // namespace syncopate
