// Reads and checks Slurm's variables about the step of this task: the number of tasks, the node of
// each task, and the number of this task. A step is the set of tasks that one srun started.
// resolve_slurm.cc derives roles from them. slurm_nodes.cc has the second half of these functions:
// they expand Slurm's short forms for nodes and counts, and place ranks on nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/environment.h"
#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

struct SlurmStep {
  int rank = 0;
  int tasks = 1;
  Place place;          // the place of this task according to Slurm
  int local_tasks = 1;  // number of tasks on the node of this task
  // In a heterogeneous job: for each component that takes part in this step, its number of tasks,
  // in the order of ranks. In other jobs: only the number of tasks.
  std::vector<int> group_sizes;
  int group = 0;  // the component of this task, as an index into group_sizes
  // The place of every rank; empty if no variable says the places (-m arbitrary without a list).
  std::vector<Place> places;
  std::string distribution;  // how tasks are placed on nodes: "block", "cyclic", ...
  std::string id;            // numbers of job and step, such as "17.0"
  std::string nonce_file;    // file of the nonce; a requeued job has another file
  std::uint16_t port = 0;    // port of the rendezvous
  std::string launch_host;   // the address of the machine on which srun ran; "" if unknown
  // The node of the job on which srun ran; "" if unknown, or if srun did not run on a node of the
  // job.
  std::string launch_node;
};

// Returns whether the environment has the variables of a task that srun started.
bool is_in_slurm_step(const Environment& environment);

// Reads the Slurm step of this task. Uses only Slurm's variables about the step, since the
// variables about the job describe what was allocated, not what runs. Throws UsageError if a
// variable is missing or wrong. Source: srun(1), "OUTPUT ENVIRONMENT VARIABLES"; Slurm's
// heterogeneous job support. Slurm's page on heterogeneous jobs says about a step over several
// components: SLURM_STEP_NODELIST is sorted by name, ranks are ordered by component, and no
// variable says the component of a task.
SlurmStep read_slurm_step(const Environment& environment);

// Expands a node list: "n[08-10]-ib,gpu7" -> n08-ib, n09-ib, n10-ib, gpu7. `what` names the
// variable in the message. Throws UsageError, with text and column, if brackets or ranges are
// malformed, if there is no host, or if there are more than 65,536 hosts. Source: scontrol(1),
// "show hostnames". This parser is stricter than Slurm's parser, which reads "n[1-]" as n1.
std::vector<std::string> expand_hostlist(std::string_view text, std::string_view what);

// Expands numbers of tasks per node: "2(x3),1" -> 2, 2, 2, 1. Every count is at least 1. Throws
// UsageError like expand_hostlist(). Source: srun(1), SLURM_STEP_TASKS_PER_NODE.
std::vector<int> expand_task_counts(std::string_view text, std::string_view what);

// A node of a Slurm step, and the number of the step's tasks on this node.
struct NodeTasks {
  std::string node;
  int tasks = 0;
};

// Returns the place of each rank. `distribution` is the value of SLURM_DISTRIBUTION: "block",
// "cyclic" or "plane". The part after a colon or comma concerns CPU sockets and is ignored. Any
// other value is treated as "block", Slurm's default. `plane_size` is used for "plane" only.
// Source: srun(1), --distribution.
std::vector<Place> place_tasks(const std::vector<NodeTasks>& nodes, std::string_view distribution,
                               int plane_size = 1);

// Returns the place of each rank, given the node of each rank (srun -m arbitrary).
std::vector<Place> place_by_node(const std::vector<std::string>& nodes);

}  // namespace syncopate
