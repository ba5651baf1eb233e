#include "deploy/launch/launcher.h"

#include "deploy/launch/exit_code.h"

namespace syncopate {

int launch(const LaunchPlan& plan, const LaunchRules& rules, const LaunchOutput& output) {
  StopSignal stop;
  for (int incarnation = 0;; ++incarnation) {
    RoleGroup group(plan(incarnation), rules, output, stop);
    const int exit_code = group.run();
    // Wrong usage would be as wrong the next time; 75 is for whoever asked us to stop.
    const bool may_restart = exit_code == kExitFailed && !group.was_asked_to_stop();
    if (!may_restart || incarnation == rules.most_restarts) return exit_code;
    output.err("launch: restart " + std::to_string(incarnation + 1) + " of " +
               std::to_string(rules.most_restarts) + "\n");
  }
}

}  // namespace syncopate
