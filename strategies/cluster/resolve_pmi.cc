// The variables that other MPIs' launchers set: MPICH's and Intel's mpiexec (Hydra). They say who a
// task is, not where rank 0 listens. Slurm sets them too (srun --mpi=pmi2, pmix), and knows more
// itself; Open MPI's processes have PMIx's, and come before. PMIx alone does not say how many tasks
// there are: each would take itself for the only one.
#include "models/base/errors.h"
#include "strategies/cluster/resolvers.h"
#include "strategies/cluster/slurm_step.h"
#include "strategies/cluster/source_variables.h"

namespace syncopate {
namespace {

// Whether srun set them: the job is then named after the step.
bool is_slurms(const Environment& environment, std::string_view job) {
  if (!is_in_slurm_step(environment)) return false;
  const std::string step = filled(environment, "SLURM_JOB_ID").value_or("") + "." +
                           filled(environment, "SLURM_STEP_ID").value_or("");
  return job == step || job == "slurm.pmix." + step;
}

}  // namespace

std::optional<ClusterSpec> resolve_pmi(const ClusterFlags& /*unused*/,
                                       const Environment& environment, Notes& notes) {
  const bool by_srun = is_slurms(environment, filled(environment, "PMI_JOBID").value_or("")) ||
                       is_slurms(environment, filled(environment, "PMIX_NAMESPACE").value_or(""));
  if (by_srun) {
    notes.emplace_back("PMI: set by srun, whose own variables say more");
    return std::nullopt;
  }
  const auto pmix_rank = filled(environment, "PMIX_RANK");
  if (pmix_rank && !filled(environment, "PMI_RANK") &&
      !filled(environment, "OMPI_COMM_WORLD_RANK")) {
    throw UsageError("PMIX_RANK=" + *pmix_rank +
                     ": a launcher started this task as one of several, but no variable says how "
                     "many; give each --rank, --world-size and --rendezvous, or unset PMIX_RANK if "
                     "it is alone");
  }
  if (!has_all(environment, "PMI", {"PMI_RANK", "PMI_SIZE"}, notes)) return std::nullopt;
  ClusterSpec spec;
  spec.index = number_of(environment, "PMI_RANK", 0, kMostTasks, 0);
  spec.world_size = number_of(environment, "PMI_SIZE", 1, kMostTasks, 1);
  require_below("PMI_RANK", spec.index, "PMI_SIZE", spec.world_size);
  spec.local_rank = number_of(environment, "MPI_LOCALRANKID", 0, kMostTasks, 0);
  spec.local_size = number_of(environment, "MPI_LOCALNRANKS", 1, kMostTasks, spec.local_rank + 1);
  require_below("MPI_LOCALRANKID", spec.local_rank, "MPI_LOCALNRANKS", spec.local_size);
  return spec;
}

}  // namespace syncopate
