// The exit codes, the version and the compiler's version that every role of the program reports.
#pragma once

#include <string_view>

namespace syncopate {

std::string_view program_version() noexcept;   // such as "0.1.0"
std::string_view compiler_version() noexcept;  // such as "GNU 12.2.0"

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
// Stopped on request after a checkpoint; the job should be requeued.
constexpr int kExitStopped = 75;

// Returns the worse of two exit codes. From worst to best the order is 2, 1, 75, 0; an unknown code
// counts as 1.
int worse_exit_code(int left, int right) noexcept;

}  // namespace syncopate
