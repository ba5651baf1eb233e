// On which node each task of a step runs, when only nodes and counts are told. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// Where a task runs, as its source names it.
struct Place {
  std::string node;
  int local_rank = 0;  // among the tasks on that node
  // The most usual of several placements that fit what is told.
  bool is_assumed = false;
  bool operator==(const Place& other) const {
    return node == other.node && local_rank == other.local_rank;
  }
};

// "node n1, local rank 0"
std::string describe(const Place& place);

// The nodes of a step in Slurm's order, and how many tasks each has.
struct NodeTasks {
  std::string node;
  int tasks = 0;
};

// By rank. distribution: srun's -m as SLURM_DISTRIBUTION has it: "block", "cyclic", "plane"; what
// follows a colon or comma concerns sockets and is not looked at; plane_size is plane's. Anything
// else is taken for block, Slurm's usual choice. Source: srun(1), --distribution.
std::vector<Place> place_tasks(const std::vector<NodeTasks>& nodes, std::string_view distribution,
                               int plane_size = 1);

// The node of each rank is told, in the order of ranks (-m arbitrary).
std::vector<Place> place_by_node(const std::vector<std::string>& nodes);

}  // namespace syncopate
