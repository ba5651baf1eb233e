// Exit codes of a role, and the choice between the codes of several roles of a launch.
#pragma once

namespace syncopate {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitStopped = 75;  // on request, after a checkpoint

// The worse of two exit codes: 2, then 1, then 75, then 0. An unknown code counts as 1.
int worse_exit_code(int left, int right) noexcept;

}  // namespace syncopate
