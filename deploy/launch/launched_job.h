// Runs a job on this machine, with one process for each role (a worker or a server). If a failure
// ends the job, all its roles may be started again together, as a new RoleGroup.
#pragma once

#include <functional>
#include <vector>

#include "deploy/launch/launch_rules.h"
#include "deploy/launch/launched_role.h"
#include "deploy/launch/role_process.h"

namespace syncopate {

// A function that returns the commands of the roles to start together. It is called before each
// common start of the roles. restarts: the number of restarts so far, 0 in the first call.
using LaunchPlan = std::function<std::vector<RoleCommand>(int restarts)>;

// Starts the roles with the commands that `plan` returns, and waits until they have ended. Blocks
// the signals of stop_signals.h and SIGQUIT during the run and passes them on to the roles. Returns
// the worst exit code (exit_codes.h) of all roles. For a role that was started again, the exit code
// of the last process counts. The caller must not have started a thread before. Throws FileError if
// a role cannot be started.
int launch(const LaunchPlan& plan, const LaunchRules& rules, const LaunchOutput& output);

}  // namespace syncopate
