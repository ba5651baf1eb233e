#include "deploy/launch/launched_job.h"

#include <fmt/format.h>

#include <poll.h>
#include <csignal>

#include <chrono>
#include <optional>
#include <string>

#include "deploy/launch/output_queue.h"
#include "deploy/launch/role_group.h"
#include "models/base/deadline.h"
#include "worker/run/exit_codes.h"
#include "worker/train/stop_signal.h"

namespace syncopate {
namespace {

// Writes what the queues hold after the roles have ended. Waits for a reader of standard output,
// which carries results, until a signal arrives, and for one of standard error a few seconds.
void write_rest(const LaunchOutput& output, StopSignal& stop, bool was_asked_to_stop) {
  constexpr std::chrono::seconds kStopTimeout(1);
  constexpr std::chrono::seconds kErrTimeout(5);
  constexpr std::chrono::milliseconds kSlice(100);
  const Deadline err_end = Deadline::after(kErrTimeout);
  std::optional<Deadline> end;
  for (;;) {
    if (stop.poll()) was_asked_to_stop = true;
    if (was_asked_to_stop && !end) end = Deadline::after(kStopTimeout);
    const bool writes_out = is_blocked(output.out_queue);
    const bool writes_err = is_blocked(output.err_queue) && !err_end.passed();
    if ((!writes_out && !writes_err) || (end && end->passed())) return;
    if (writes_out) output.out_queue->write_kept(kSlice);
    if (writes_err) output.err_queue->write_kept(kSlice);
  }
}

// Waits for the duration before a restart. Returns false if a signal arrived before its end.
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
  // The roles do not catch SIGQUIT, and end. Without it here launch would end before them,
  // silently.
  StopSignal stop(SIGQUIT);
  for (int restarts = 0;;) {
    RoleGroup group(plan(restarts), rules, restarts, output, stop);
    const int exit_code = group.run();
    // Exit code 2 (wrong usage) would be the same after a restart. Exit code 75 reports a stop on
    // request to the caller, which decides when to resume.
    const bool may_restart = rules.restarts_together && exit_code == kExitFailed &&
                             group.has_failed() && !group.was_asked_to_stop();
    if (!may_restart || group.restarts() >= rules.most_restarts) {
      const std::string conclusion = exit_code == kExitFailed ? group.conclusion() : "";
      if (!conclusion.empty()) output.err("launch: " + conclusion + "\n");
      write_rest(output, stop, group.was_asked_to_stop());
      return exit_code;
    }
    restarts = group.restarts() + 1;
    output.err(fmt::format("launch: restart {} of {}\n", restarts, rules.most_restarts));
    if (!pause(rules.pause_before_all, stop)) {
      write_rest(output, stop, true);
      return exit_code;
    }
  }
}

}  // namespace syncopate
