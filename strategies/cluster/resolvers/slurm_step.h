// What Slurm tells a task about its step, read and checked: how many tasks there are, where each
// runs, which of them this one is. It knows nothing of roles; resolve_slurm.cc gives those.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/environment.h"
#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

struct SlurmStep {
  int rank = 0;
  int tasks = 1;
  Place place;          // this task's, as Slurm told it
  int local_tasks = 1;  // on its node
  // Of each component of a heterogeneous job that is in this step, in the order of ranks; one for
  // any other job.
  std::vector<int> group_sizes;
  int group = 0;  // this task's, in group_sizes
  // By rank; empty where the variables do not say (-m arbitrary without a list).
  std::vector<Place> places;
  std::string distribution;  // "block", "cyclic", ...
  std::string id;            // "17.0": job and step
  std::string nonce;         // of this incarnation of the job
  std::uint16_t port = 0;    // for the rendezvous
  std::string launch_host;   // the address of where srun ran; "": not told
  std::string launch_node;   // which node that is; "": not known, maybe none of the job's
};

// A task that srun started, as far as one can tell; else the process is outside of any step.
bool is_in_slurm_step(const Environment& environment);

// Step variables only: the job's describe what was allocated, not what runs. Throws UsageError when
// one is missing or wrong. Source: srun(1), "OUTPUT ENVIRONMENT VARIABLES"; Slurm's heterogeneous
// job support: in a step over several components SLURM_STEP_NODELIST is sorted by name, ranks go
// by component, and no variable names a task's own.
SlurmStep read_slurm_step(const Environment& environment);

}  // namespace syncopate
