// Chooses the GPUs of a task among the GPUs that are visible to it: by environment variables, by
// the number of visible GPUs, or by comparing the visible GPUs of all tasks of the job.
// CUDA_VISIBLE_DEVICES names the GPUs that are visible to a process. CUDA numbers these GPUs from
// 0, and all indices in this file are these numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/environment.h"

namespace syncopate {

// Returns the entries of CUDA_VISIBLE_DEVICES; an empty list if its value is "", "NoDevFiles" or
// "-1". Returns nullopt if the variable is unset, because this function does not know the GPUs of
// the machine.
std::optional<std::vector<std::string>> visible_gpus(const Environment& environment);

// Chooses this task's GPUs, as indices into visible_gpus(); an empty list if no GPU is listed. The
// task uses all visible GPUs if there is only one, or if their number equals SLURM_GPUS_PER_TASK,
// which means that the launcher bound the task to them. Otherwise deal_out_gpus() divides the GPUs
// by local rank among the tasks of the node. `most_tasks` is the largest number of tasks on any
// node.
std::vector<int> choose_gpus(const Environment& environment, int local_rank, int most_tasks);

// Returns whether fewer GPUs are visible to this task than Slurm's step has on this node. The task
// is then bound to its visible GPUs.
bool sees_part_of_node(const Environment& environment);

// Divides `visible` GPUs (at least 1) among `most_tasks` tasks in equal contiguous parts, and
// returns the part of the task with this local rank. If there are fewer GPUs than tasks, each task
// gets one GPU, in turn.
std::vector<int> deal_out_gpus(int visible, int local_rank, int most_tasks);

// The GPUs that are visible to one task, and the name of their machine.
struct SeenGpus {
  std::string machine;
  // The PCI bus ids of the visible GPUs, by index. Empty if the task uses no GPU, or if its GPUs
  // are already chosen.
  std::vector<std::string> bus_ids;
};

struct GpuShare {
  std::vector<int> gpus;  // indices into the visible GPUs of the task
  int tasks = 1;          // number of tasks among which the visible GPUs are divided
};

// Returns the GPUs of task number `mine`, an index into `tasks`. bus_ids of this task must not be
// empty. Tasks on one machine with the same set of visible GPUs divide this set in the order of
// `tasks`.
GpuShare share_of_gpus(std::span<const SeenGpus> tasks, std::size_t mine);

}  // namespace syncopate
