// Tasks that srun started. Their hosts are not worked out from Slurm's variables; the row is there
// so that nobody takes several tasks that train each for themselves for one job.
#include <charconv>

#include "strategies/cluster/resolvers.h"
#include "strategies/cluster/source_variables.h"

namespace syncopate {

std::optional<ClusterSpec> resolve_slurm(const ClusterFlags& /*unused*/,
                                         const Environment& environment, Notes& notes) {
  const std::string text = filled(environment, "SLURM_STEP_NUM_TASKS").value_or("");
  int tasks = 0;
  std::from_chars(text.data(), text.data() + text.size(), tasks);
  if (tasks > 1) {
    notes.push_back("Slurm: not read yet, although SLURM_STEP_NUM_TASKS=" + text +
                    "; start the tasks with mpirun or torchrun, or give each --rank, --world-size "
                    "and --rendezvous");
  }
  return std::nullopt;
}

}  // namespace syncopate
