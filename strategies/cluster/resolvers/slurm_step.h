// Reads and checks what Slurm tells a task about its step: the number of tasks, the node of each,
// and which of them this task is. resolve_slurm.cc derives roles from it.
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
  Place place;          // the place of this task, as Slurm tells it
  int local_tasks = 1;  // number of tasks on the node of this task
  // The number of tasks of each component of a heterogeneous job that is in this step, in the order
  // of ranks; one number for any other job.
  std::vector<int> group_sizes;
  int group = 0;  // the component of this task, as an index into group_sizes
  // The place of every rank; empty when no variable tells the places (-m arbitrary without a list).
  std::vector<Place> places;
  std::string distribution;  // how tasks are placed on nodes: "block", "cyclic", ...
  std::string id;            // numbers of job and step, such as "17.0"
  std::string nonce_file;    // of this start of the job; a requeued job has another one
  std::uint16_t port = 0;    // port of the rendezvous
  std::string launch_host;   // the address of the machine that srun ran on; "" when unknown
  std::string launch_node;   // the job's node that srun ran on; "" when unknown or none of them
};

// Returns whether the environment has the variables of a task that srun started.
bool is_in_slurm_step(const Environment& environment);

// Reads only Slurm's variables of the step, since the job's variables describe what was allocated,
// not what runs. Throws UsageError when a variable is missing or wrong. Source: srun(1), "OUTPUT
// ENVIRONMENT VARIABLES"; Slurm's heterogeneous job support: in a step over several components,
// SLURM_STEP_NODELIST is sorted by name, ranks are ordered by component, and no variable names the
// component of a task.
SlurmStep read_slurm_step(const Environment& environment);

}  // namespace syncopate
