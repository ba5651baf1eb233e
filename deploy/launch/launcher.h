// Runs a job's roles, and runs them again after a failure as often as allowed. What the roles are
// is the plan's affair: processes of this program, mpirun, or what a test thinks up.
#pragma once

#include <functional>
#include <vector>

#include "deploy/launch/role_group.h"

namespace syncopate {

// What to start together. Called before each such start with how often roles have been started
// again so far: 0 the first time, and more each time.
using LaunchPlan = std::function<std::vector<RoleCommand>(int restarts)>;

// Blocks SIGINT, SIGTERM and SIGUSR1 while it runs and passes them on. Returns the worst exit code
// of each role's last incarnation (exit_code.h). Call it before any thread exists. Throws
// FileError when a role cannot be started.
int launch(const LaunchPlan& plan, const LaunchRules& rules, const LaunchOutput& output);

}  // namespace syncopate
