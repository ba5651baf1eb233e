// The roles of one job, started together and watched to their end: output and stop signals are
// passed on; one that failed is started again or ends the others, as the rules for its kind say.
// Started once; a restart of all is a new group.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "deploy/launch/launch_rules.h"
#include "deploy/launch/launched_role.h"
#include "deploy/launch/role_output.h"
#include "deploy/launch/role_process.h"
#include "models/base/deadline.h"
#include "worker/train/stop_signal.h"

namespace syncopate {

// One thread only, and the only one of the process: it forks. `stop` outlives it.
class RoleGroup {
 public:
  // Starts them, in this order. `restarts`: how often all have been started again so far. Throws
  // FileError when one cannot be started; those that run are killed.
  RoleGroup(std::vector<RoleCommand> commands, const LaunchRules& rules, int restarts,
            const LaunchOutput& output, StopSignal& stop);

  // Returns when all have ended: the worst exit code (exit_code.h) of their last incarnations. Has
  // no deadline: training lasts as long as it lasts.
  int run();
  // A signal asked for it: what ends then does not end by failure.
  bool was_asked_to_stop() const noexcept { return asked_to_stop_; }
  // Somebody's failure ended the job, or left it unfinished. False where workers went on without
  // the one that failed, and ended well: then its exit code is all there is to say.
  bool has_failed() const noexcept;
  // Of the role that was started most often.
  int restarts() const noexcept;

 private:
  enum class Stage : std::uint8_t { kRunning, kPatience, kGrace, kKilled };

  const RoleRule& rule_of(const LaunchedRole& role) const noexcept;
  // The job lives, and has all other servers.
  bool takes_back(const LaunchedRole& role) const noexcept;
  bool may_restart(const LaunchedRole& role) const noexcept;

  void wait_for_events();
  int poll_milliseconds() const noexcept;
  void pass_on_signals();
  void conclude(LaunchedRole& role);
  // It ended badly: `what` happened is said, with what becomes of it.
  void judge(LaunchedRole& role, const std::string& what);
  // It came when there was nothing left to do.
  bool came_too_late(const LaunchedRole& role) const noexcept;
  // It was stopped when the others completed the job.
  bool slept_through_the_end(const LaunchedRole& role) const noexcept;
  bool outlived_the_job(const LaunchedRole& role) const noexcept;
  void start_those_due();
  // Forgets starts that nobody waits for any more, and ends servers that serve nobody.
  void settle();
  // All is trained, and those that still run may never be let in.
  void hurry_late_ones();
  // The roles are to end by themselves, and one that is stopped cannot.
  void begin_ending(std::string because, std::chrono::milliseconds patience);
  void wake_stopped();
  // The next stage of an end, once its time has come.
  void press_on();
  void send_to_all(int signal, const std::string& why);

  LaunchRules rules_;
  WriteLines say_;
  StopSignal& stop_;
  std::vector<LaunchedRole> roles_;
  Stage stage_ = Stage::kRunning;
  std::optional<Deadline> stage_end_;
  std::string ending_because_;            // "another had failed"
  std::array<int, 65> times_received_{};  // by signal
  bool asked_to_stop_ = false;
  bool stopped_by_failure_ = false;
  bool is_command_wrong_ = false;
};

// What to start together. Called before each such start with how often roles have been started
// again so far: 0 the first time, and more each time.
using LaunchPlan = std::function<std::vector<RoleCommand>(int restarts)>;

// Blocks SIGINT, SIGTERM and SIGUSR1 while it runs and passes them on. Returns the worst exit code
// of each role's last incarnation (exit_code.h). Call it before any thread exists. Throws
// FileError when a role cannot be started.
int launch(const LaunchPlan& plan, const LaunchRules& rules, const LaunchOutput& output);

}  // namespace syncopate
