// Chooses the GPUs of a task among those that it sees: by what the environment says, by their
// number, or by comparing what all tasks of the job see. CUDA_VISIBLE_DEVICES names the GPUs that
// a process may open, and CUDA numbers these from 0; all indices here are such numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/environment.h"

namespace syncopate {

// Returns the entries of CUDA_VISIBLE_DEVICES; {} when it is empty, "NoDevFiles" or "-1". Nothing
// when it is unset, because the GPUs of the machine are then unknown here.
std::optional<std::vector<std::string>> visible_gpus(const Environment& environment);

// Chooses this task's GPUs, as indices into the visible list; {} when none is listed. A task uses
// all visible GPUs when there is only one, or when SLURM_GPUS_PER_TASK equals their number, since
// the launcher then bound the task to them. Otherwise they are divided by local rank among the
// most_tasks tasks of a node.
std::vector<int> choose_gpus(const Environment& environment, int local_rank, int most_tasks);

// Whether this task sees fewer GPUs than Slurm's step has on this node, which means that it is
// bound to the GPUs it sees.
bool sees_part_of_node(const Environment& environment);

// Divides `visible` GPUs (at least 1) among most_tasks tasks in equal contiguous parts. When there
// are fewer GPUs than tasks, each task gets one GPU, in turn.
std::vector<int> deal_out_gpus(int visible, int local_rank, int most_tasks);

// The GPUs that one task sees, and the machine that they are in.
struct SeenGpus {
  std::string machine;
  // The visible GPUs by index. Empty when the task uses no GPU or its GPUs are already chosen.
  std::vector<std::string> bus_ids;
};

struct GpuShare {
  std::vector<int> gpus;  // indices into the GPUs that the task sees
  int tasks = 1;          // number of tasks that share these visible GPUs
};

// Returns the GPUs of task `mine`, which must see at least one. Tasks of one machine that see the
// same set of GPUs divide it among them in the order of tasks.
GpuShare share_of_gpus(std::span<const SeenGpus> tasks, std::size_t mine);

}  // namespace syncopate
