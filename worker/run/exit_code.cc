#include "worker/run/exit_code.h"

namespace syncopate {
namespace {

int badness(int exit_code) {
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

int worse_exit_code(int left, int right) noexcept {
  const int worse = badness(left) >= badness(right) ? left : right;
  return badness(worse) == badness(kExitFailed) ? kExitFailed : worse;
}

}  // namespace syncopate
