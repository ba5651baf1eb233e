// Which of the GPUs that a task sees are its own. By what the environment says (a CUDA_VISIBLE_
// DEVICES names what the process may open, and CUDA numbers those from 0), by their number, or by
// what all tasks of the job see.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/environment.h"

namespace syncopate {

// CUDA_VISIBLE_DEVICES, entry by entry; {} when it is empty, "NoDevFiles" or "-1". Nothing when it
// is unset: then nobody says what there is.
std::optional<std::vector<std::string>> visible_gpus(const Environment& environment);

// Indices into the visible list, never what stands in it: a task that re-masked could take
// somebody else's. One GPU that is visible is taken as it is: the launcher bound the task to it,
// and all of them where SLURM_GPUS_PER_TASK is their number. Otherwise they are dealt out by local
// rank among the most_tasks tasks that a node has. {}: none is listed.
std::vector<int> choose_gpus(const Environment& environment, int local_rank, int most_tasks);

// Slurm's step has more GPUs on this node than this task sees: it is bound to those.
bool sees_part_of_node(const Environment& environment);

// The same of so many GPUs, one at least: in equal parts; where there are fewer than tasks, one, in
// turn.
std::vector<int> deal_out_gpus(int visible, int local_rank, int most_tasks);

// What a task sees, of which it wants its part.
struct SeenGpus {
  std::string machine;
  std::vector<std::string> bus_ids;  // by index; none: it wants none, or was told which
};

struct GpuShare {
  std::vector<int> gpus;  // indices into what the task sees
  int tasks = 1;          // that share what it sees
};

// Of task `mine`, which sees some. Tasks of a machine that see the same GPUs share them, in the
// order of tasks; who sees others has them for itself.
GpuShare share_of_gpus(std::span<const SeenGpus> tasks, std::size_t mine);

}  // namespace syncopate
