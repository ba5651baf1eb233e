// What every role of the program reports in one way: its exit code, its version, and the compiler
// of this build.
#pragma once

#include <string_view>

namespace syncopate {

std::string_view program_version() noexcept;   // such as "0.1.0"
std::string_view compiler_version() noexcept;  // such as "GNU 12.2.0"

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitStopped = 75;  // stopped on request, after a checkpoint

// Returns the worse of two exit codes: 2, then 1, then 75, then 0. An unknown code counts as 1.
int worse_exit_code(int left, int right) noexcept;

}  // namespace syncopate
