// The variables that other MPIs' launchers set: MPICH's and Intel's mpiexec (Hydra), MVAPICH's
// mpirun_rsh, LSF's jsrun. They say who a task is, not where rank 0 listens. Slurm sets PMI's too
// (srun --mpi=pmi2, pmix), and knows more itself; Open MPI's processes have PMIx's, and come
// before. PMIx and PALS alone do not say how many tasks there are: each would take itself for the
// only one.
#include <algorithm>
#include <array>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_numbers.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/cluster/resolvers/slurm_step.h"
#include "strategies/cluster/resolvers/source_variables.h"

namespace syncopate {
namespace {

constexpr NumberVariables kPmi = {.rank = "PMI_RANK",
                                  .size = "PMI_SIZE",
                                  .local_rank = "MPI_LOCALRANKID",
                                  .local_size = "MPI_LOCALNRANKS"};
constexpr NumberVariables kMvapich = {.rank = "MV2_COMM_WORLD_RANK",
                                      .size = "MV2_COMM_WORLD_SIZE",
                                      .local_rank = "MV2_COMM_WORLD_LOCAL_RANK",
                                      .local_size = "MV2_COMM_WORLD_LOCAL_SIZE"};
constexpr NumberVariables kJsm = {.rank = "JSM_NAMESPACE_RANK",
                                  .size = "JSM_NAMESPACE_SIZE",
                                  .local_rank = "JSM_NAMESPACE_LOCAL_RANK",
                                  .local_size = "JSM_NAMESPACE_LOCAL_SIZE"};

bool is_unset_or_same(const Environment& environment, std::string_view variable,
                      std::string_view other) {
  const auto value = filled(environment, variable);
  return !value || value == filled(environment, other);
}

// Whether srun set them: the job is then named after the step, and has its numbers. Hydra's daemons
// hand the name of the step that they run in on to their tasks, who have numbers of their own.
bool is_srun_speaking(const Environment& environment) {
  if (!is_in_slurm_step(environment)) return false;
  const std::string step = filled(environment, "SLURM_JOB_ID").value_or("") + "." +
                           filled(environment, "SLURM_STEP_ID").value_or("");
  const bool is_named = filled(environment, "PMI_JOBID") == step ||
                        filled(environment, "PMIX_NAMESPACE") == "slurm.pmix." + step;
  return is_named && is_unset_or_same(environment, "PMI_RANK", "SLURM_PROCID") &&
         is_unset_or_same(environment, "PMI_SIZE", "SLURM_STEP_NUM_TASKS");
}

bool tells_how_many(const Environment& environment) {
  constexpr std::array kNumbers = {std::pair{kPmi.rank, kPmi.size},
                                   std::pair{kMvapich.rank, kMvapich.size},
                                   std::pair{kJsm.rank, kJsm.size},
                                   std::pair<std::string_view, std::string_view>{
                                       "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}};
  return std::ranges::any_of(kNumbers, [&environment](const auto& names) {
    return filled(environment, names.first) && filled(environment, names.second);
  });
}

[[noreturn]] void refuse_rank_alone(const std::string& variable, const std::string& rank) {
  throw UsageError(variable + "=" + rank +
                   ": a launcher started this task as one of several, but no variable says how "
                   "many; give each --rank, --world-size and --rendezvous, or unset " +
                   variable + " if it is alone");
}

void require_size(const Environment& environment) {
  for (const char* variable : {"PMIX_RANK", "PALS_RANKID"}) {
    const auto rank = filled(environment, variable);
    if (rank && !tells_how_many(environment)) refuse_rank_alone(variable, *rank);
  }
}

}  // namespace

std::optional<ClusterSpec> resolve_pmi(const ClusterFlags& /*unused*/,
                                       const Environment& environment, Notes& notes) {
  if (is_srun_speaking(environment)) {
    notes.emplace_back("PMI: set by srun, whose own variables say more");
    return std::nullopt;
  }
  require_size(environment);
  return read_numbers(environment, "PMI", kPmi, notes);
}

std::optional<ClusterSpec> resolve_mvapich(const ClusterFlags& /*unused*/,
                                           const Environment& environment, Notes& notes) {
  return read_numbers(environment, "MVAPICH", kMvapich, notes);
}

std::optional<ClusterSpec> resolve_jsm(const ClusterFlags& /*unused*/,
                                       const Environment& environment, Notes& notes) {
  return read_numbers(environment, "JSM", kJsm, notes);
}

}  // namespace syncopate
