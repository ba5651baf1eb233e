// Exit codes of roles, and of a launch: the worst of them.
#pragma once

namespace syncopate {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitStopped = 75;  // on request, with a checkpoint to go on from

// The worse of two: 2, then 1 and all that is none of the four, which becomes 1, then 75, then 0.
int worse_exit_code(int left, int right) noexcept;

}  // namespace syncopate
