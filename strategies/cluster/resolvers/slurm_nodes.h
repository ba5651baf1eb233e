// Expands Slurm's short forms for nodes, such as "n[1-3,7]", and for tasks per node, such as
// "2(x3),1". Computes from them which task runs on which node. Pure functions. The order of nodes
// is kept, because ranks are assigned in this order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

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
