// Which of the GPUs that a task sees are its own. By what the environment says (a CUDA_VISIBLE_
// DEVICES names what the process may open, and CUDA numbers those from 0), or by their number.
#pragma once

#include <optional>
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
// rank, equally many to each of most_tasks tasks that a node has; none when there are fewer GPUs
// than tasks.
std::vector<int> choose_gpus(const Environment& environment, int local_rank, int most_tasks);

// The same where the environment gives a task none and CUDA shows so many, one at least: in equal
// parts; where there are fewer than tasks, one, in turn.
std::vector<int> deal_out_gpus(int visible, int local_rank, int most_tasks);

}  // namespace syncopate
