#include "worker/run/exit_codes.h"

namespace syncopate {
namespace {

int severity(int exit_code) {
  switch (exit_code) {
    case kExitDone:
      return 0;
    case kExitStopped:
      return 1;
    case kExitUsage:
      return 3;
    default:
      return 2;
  }
}

}  // namespace

std::string_view program_version() noexcept { return SYNCOPATE_VERSION; }

std::string_view compiler_version() noexcept { return SYNCOPATE_COMPILER; }

int worse_exit_code(int left, int right) noexcept {
  const int worse = severity(left) >= severity(right) ? left : right;
  return severity(worse) == severity(kExitFailed) ? kExitFailed : worse;
}

}  // namespace syncopate
