// What the roles of a group, one by one and looked at together, say about their job.
#pragma once

#include <vector>

#include "deploy/launch/launched_role.h"

namespace syncopate {

// As SIGTERM ends a server whose job is not over: by that signal, or with a line on it and exit
// code 1. A crash by another signal, or another code, is neither.
bool ended_as_asked(const LaunchedRole& role);
// Somebody trains, or will.
bool have_workers_left(const std::vector<LaunchedRole>& roles);  // false too where there are none
// There are workers, and each has ended well: what was to be trained is trained.
bool have_workers_ended_well(const std::vector<LaunchedRole>& roles);
bool has_a_worker_ended_well(const std::vector<LaunchedRole>& roles);
// There are servers, all have ended, and none of them is started again.
bool are_servers_gone(const std::vector<LaunchedRole>& roles);
// ... and each of them well: the job is over.
bool have_servers_ended_well(const std::vector<LaunchedRole>& roles);
// Whoever still runs came later than the others.
bool do_only_late_ones_run(const std::vector<LaunchedRole>& roles);

}  // namespace syncopate
