// Reads the variables of launchers that tell a task its rank and the number of tasks, but no
// address of rank 0: Open MPI's mpirun, the mpiexec of MPICH and Intel MPI (Hydra, PMI), MVAPICH's
// mpirun_rsh, LSF's jsrun, and horovodrun. PMI variables are also set by Slurm (srun --mpi=pmi2 or
// pmix); Slurm's own variables tell more. PMIx ones are also set by Open MPI, which comes first.
// PMIx and PALS variables alone do not tell the number of tasks, so they are refused.
// Source: the launchers' manuals; for Horovod, horovod/runner/gloo_run.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/cluster/resolvers/slurm_step.h"

namespace syncopate {
namespace {

// The names of the four variables of a launcher that tell rank, size and local place.
struct RankVariables {
  std::string_view rank;
  std::string_view size;
  std::string_view local_rank;
  std::string_view local_size;
};

constexpr int kMaxHorovodPort = 65535;

constexpr RankVariables kPmi = {.rank = "PMI_RANK",
                                .size = "PMI_SIZE",
                                .local_rank = "MPI_LOCALRANKID",
                                .local_size = "MPI_LOCALNRANKS"};
constexpr RankVariables kMvapich = {.rank = "MV2_COMM_WORLD_RANK",
                                    .size = "MV2_COMM_WORLD_SIZE",
                                    .local_rank = "MV2_COMM_WORLD_LOCAL_RANK",
                                    .local_size = "MV2_COMM_WORLD_LOCAL_SIZE"};
constexpr RankVariables kJsm = {.rank = "JSM_NAMESPACE_RANK",
                                .size = "JSM_NAMESPACE_SIZE",
                                .local_rank = "JSM_NAMESPACE_LOCAL_RANK",
                                .local_size = "JSM_NAMESPACE_LOCAL_SIZE"};

// Returns a ClusterSpec with rank, size and local place, or nothing when rank or size is not set.
// Adds a note when only one of the two is. Throws UsageError for a wrong number.
std::optional<ClusterSpec> read_rank(const Environment& environment, std::string_view source,
                                     const RankVariables& names, Notes& notes) {
  if (!has_all(environment, source, {names.rank, names.size}, notes)) return std::nullopt;
  ClusterSpec spec;
  spec.index = number_of(environment, names.rank, 0, kMostTasks, 0);
  spec.world_size = number_of(environment, names.size, 1, kMostTasks, 1);
  require_below(names.rank, spec.index, names.size, spec.world_size);
  spec.has_local_rank = filled(environment, names.local_rank).has_value();
  spec.local_rank = number_of(environment, names.local_rank, 0, kMostTasks, 0);
  spec.local_size = number_of(environment, names.local_size, 1, kMostTasks, spec.local_rank + 1);
  require_below(names.local_rank, spec.local_rank, names.local_size, spec.local_size);
  return spec;
}

bool is_unset_or_same(const Environment& environment, std::string_view variable,
                      std::string_view other) {
  const auto value = filled(environment, variable);
  return !value || value == filled(environment, other);
}

// Whether srun set the PMI variables: the PMI job then has the name and the numbers of the step.
// Hydra's daemons pass the name of the step that they run in to their tasks, but with other ranks.
bool is_set_by_srun(const Environment& environment) {
  if (!is_in_slurm_step(environment)) return false;
  const std::string step = filled(environment, "SLURM_JOB_ID").value_or("") + "." +
                           filled(environment, "SLURM_STEP_ID").value_or("");
  const bool is_named = filled(environment, "PMI_JOBID") == step ||
                        filled(environment, "PMIX_NAMESPACE") == "slurm.pmix." + step;
  return is_named && is_unset_or_same(environment, "PMI_RANK", "SLURM_PROCID") &&
         is_unset_or_same(environment, "PMI_SIZE", "SLURM_STEP_NUM_TASKS");
}

bool has_world_size_variable(const Environment& environment) {
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
  throw UsageError(fmt::format(
      "{0}={1}: a launcher started this task as one of several, but no variable gives "
      "their number; give each --rank, --world-size and --rendezvous, or unset {0} if it "
      "is alone",
      variable, rank));
}

void require_size(const Environment& environment) {
  for (const char* variable : {"PMIX_RANK", "PALS_RANKID"}) {
    const auto rank = filled(environment, variable);
    if (rank && !has_world_size_variable(environment)) refuse_rank_alone(variable, *rank);
  }
}

}  // namespace

std::optional<ClusterSpec> resolve_open_mpi(const ClusterFlags& /*unused*/,
                                            const Environment& environment, Notes& notes) {
  std::optional<ClusterSpec> spec = read_rank(environment, "Open MPI",
                                              {.rank = "OMPI_COMM_WORLD_RANK",
                                               .size = "OMPI_COMM_WORLD_SIZE",
                                               .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
                                               .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                              notes);
  if (!spec) return std::nullopt;
  // Open MPI has no variable for a rendezvous; `syncopate launch` adds one when it runs mpirun.
  if (const auto rendezvous = filled(environment, "SYNCOPATE_RENDEZVOUS")) {
    spec->rendezvous.endpoint = parse_endpoint(*rendezvous, "SYNCOPATE_RENDEZVOUS");
  }
  return spec;
}

std::optional<ClusterSpec> resolve_pmi(const ClusterFlags& /*unused*/,
                                       const Environment& environment, Notes& notes) {
  if (is_set_by_srun(environment)) {
    notes.emplace_back("PMI: set by srun; srun's own variables are more complete");
    return std::nullopt;
  }
  require_size(environment);
  return read_rank(environment, "PMI", kPmi, notes);
}

std::optional<ClusterSpec> resolve_mvapich(const ClusterFlags& /*unused*/,
                                           const Environment& environment, Notes& notes) {
  return read_rank(environment, "MVAPICH", kMvapich, notes);
}

std::optional<ClusterSpec> resolve_jsm(const ClusterFlags& /*unused*/,
                                       const Environment& environment, Notes& notes) {
  return read_rank(environment, "JSM", kJsm, notes);
}

std::optional<ClusterSpec> resolve_horovod(const ClusterFlags& /*unused*/,
                                           const Environment& environment, Notes& notes) {
  std::optional<ClusterSpec> spec = read_rank(environment, "Horovod",
                                              {.rank = "HOROVOD_RANK",
                                               .size = "HOROVOD_SIZE",
                                               .local_rank = "HOROVOD_LOCAL_RANK",
                                               .local_size = "HOROVOD_LOCAL_SIZE"},
                                              notes);
  if (!spec) return std::nullopt;
  // The named port belongs to Horovod's own server on the host of horovodrun. This is rank 0's host
  // if it is the first of the job's hosts. Rank 0 listens at the port after it.
  const auto host = filled(environment, "HOROVOD_GLOO_RENDEZVOUS_ADDR");
  const auto port_text = filled(environment, "HOROVOD_GLOO_RENDEZVOUS_PORT");
  if (spec->world_size > 1 && host && port_text) {
    const int port = number_of(environment, "HOROVOD_GLOO_RENDEZVOUS_PORT", 1, kMaxHorovodPort - 1,
                               kMaxHorovodPort - 1);
    spec->rendezvous.endpoint = Endpoint{*host, static_cast<std::uint16_t>(port + 1)};
  }
  return spec;
}

}  // namespace syncopate
