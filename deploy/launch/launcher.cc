#include "deploy/launch/launcher.h"

#include "deploy/launch/exit_code.h"

namespace syncopate {

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
  }
}

}  // namespace syncopate
