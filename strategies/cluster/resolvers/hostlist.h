// Slurm's short forms for lists: of hosts, "n[1-3,7]", and of tasks per host, "2(x3),1". Pure
// functions; the order is kept, since it is the order of ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// "n[08-10]-ib,gpu7" -> n08-ib, n09-ib, n10-ib, gpu7. `what` names the variable in the message.
// Throws UsageError with text and column: brackets or ranges that do not fit, no host, more than
// 65,536 hosts in a range or in all. Source: scontrol(1), "show hostnames"; stricter than Slurm's
// own parser, which takes "n[1-]" for n1.
std::vector<std::string> expand_hostlist(std::string_view text, std::string_view what);

// "2(x3),1" -> 2, 2, 2, 1. Throws UsageError as above; every count is at least 1.
// Source: srun(1), SLURM_STEP_TASKS_PER_NODE.
std::vector<int> expand_task_counts(std::string_view text, std::string_view what);

}  // namespace syncopate
