#include "deploy/launch/launcher.h"

#include <poll.h>

#include "models/base/deadline.h"
#include "worker/run/exit_code.h"

namespace syncopate {
namespace {

// False when a signal came first.
bool pause(std::chrono::milliseconds duration, StopSignal& stop) {
  const Deadline end = Deadline::after(duration);
  while (!end.passed()) {
    pollfd source{stop.descriptor(), POLLIN, 0};
    poll(&source, 1, end.remaining_milliseconds());
    if (stop.poll()) return false;
  }
  return true;
}

}  // namespace

int launch(const LaunchPlan& plan, const LaunchRules& rules, const LaunchOutput& output) {
  StopSignal stop;
  for (int restarts = 0;;) {
    RoleGroup group(plan(restarts), rules, restarts, output, stop);
    const int exit_code = group.run();
    // Wrong usage would be as wrong the next time; 75 is for whoever asked us to stop.
    const bool may_restart = rules.restarts_together && exit_code == kExitFailed &&
                             group.has_failed() && !group.was_asked_to_stop();
    if (!may_restart || group.restarts() >= rules.most_restarts) return exit_code;
    restarts = group.restarts() + 1;
    output.err("launch: restart " + std::to_string(restarts) + " of " +
               std::to_string(rules.most_restarts) + "\n");
    if (!pause(rules.pause_before_all, stop)) return exit_code;
  }
}

}  // namespace syncopate
