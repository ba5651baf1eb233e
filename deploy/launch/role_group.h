// Runs the roles of one job from their common start to their end. The group forwards output and
// stop signals. It starts a failed role again or ends the other roles, as the rules for that kind
// of role say. A group is started once; a restart of all roles makes a new group.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "deploy/launch/launch_rules.h"
#include "deploy/launch/launched_role.h"
#include "deploy/launch/rendezvous_event.h"
#include "deploy/launch/role_guard.h"
#include "deploy/launch/role_process.h"
#include "models/base/deadline.h"
#include "models/base/process_limits.h"
#include "worker/train/stop_signal.h"

namespace syncopate {

// A RoleGroup is used by one thread only, and the process may have no other thread, because the
// class forks. `stop` outlives the group.
class RoleGroup {
 public:
  // Starts the roles in the given order. `restarts` is how often all roles have been started again
  // so far. Throws FileError if a role cannot be started, after killing those that run.
  RoleGroup(std::vector<RoleCommand> commands, const LaunchRules& rules, int restarts,
            const LaunchOutput& output, StopSignal& stop);

  // Returns when all roles have ended: the worst exit code (exit_codes.h) of their last
  // incarnations. There is no deadline, because training may last any time.
  int run();
  // True if a signal asked the group to stop. Roles that end after that signal have not failed.
  bool was_asked_to_stop() const noexcept { return asked_to_stop_; }
  // True if the failure of a role ended the job or left it unfinished. False if the other workers
  // went on without the failed role and ended well; then only the exit code tells of the failure.
  bool has_failed() const noexcept;
  // Returns in one line why the exit code is not 0; "" if a role has said so in the last line, or
  // if the group was asked to stop.
  std::string conclusion() const;
  // The number of restarts of the role that was started most often.
  int restarts() const noexcept;

 private:
  enum class Stage : std::uint8_t { kRunning, kWaiting, kGrace, kKilled };

  const RoleRule& rule_of(const LaunchedRole& role) const noexcept;
  // True if the job runs and no other server is missing, so that the role can be accepted again.
  bool accepts_restart(const LaunchedRole& role) const noexcept;
  bool has_restart_left(const LaunchedRole& role) const noexcept;
  bool may_restart(const LaunchedRole& role) const noexcept;

  // True if the other roles wait for this role at their rendezvous.
  bool is_awaited(const LaunchedRole& role) noexcept;
  // Keeps the first cause of the job's failure; a certain cause replaces an uncertain one. The
  // first role that exits is uncertain: another, which has not ended yet, may have told it to.
  void set_cause(std::string cause, bool is_certain);

  void wait_for_events();
  int poll_milliseconds() const noexcept;
  void pass_on_signals();
  void conclude(LaunchedRole& role);
  // Reports `what` happened to a role that ended badly, and applies the rule for roles of its kind.
  // `has_exited`: the role ended by itself, not by a signal, and was started.
  void evaluate_exit(LaunchedRole& role, const std::string& what, bool has_exited);
  // True if the servers ended well before they admitted the late worker, and launch then ended that
  // worker.
  bool started_too_late(const LaunchedRole& role) const noexcept;
  // True if the worker was stopped by SIGSTOP while the others completed the job.
  bool was_stopped_at_the_end(const LaunchedRole& role) const noexcept;
  // True if the server ended badly after the last worker had ended well. A server 0 that is started
  // again at that time meets no worker, and the other servers wait for it.
  bool ended_after_the_job(const LaunchedRole& role) const noexcept;
  void start_due_roles();
  // Kills stopped roles, so that they are started again: a role that the others have given up
  // because it has been stopped too long, and a role that the others wait for at the rendezvous.
  void kill_stopped_roles();
  // Cancels planned starts of roles that the job can no longer admit, and begins to end the other
  // roles when the last worker or the last server has ended.
  void end_job_if_done();
  // Shortens the wait for late workers when the training is complete, because the servers may never
  // let them in.
  void shorten_wait_for_late_workers();
  // Waits up to `timeout` for the roles to end by themselves, and continues stopped roles so that
  // they can. `because` is the reason that the log gives.
  void begin_ending(std::string because, std::chrono::milliseconds timeout);
  // Ends the job before training has begun: nothing is saved that could be lost, so the other roles
  // are killed after `timeout`, and their ends are not reported.
  void end_before_training(const std::string& because, std::chrono::milliseconds timeout);
  void continue_stopped_roles();
  // Enters the next stage of ending the job (SIGTERM, then SIGKILL) when the deadline of the
  // current stage has passed.
  void advance_stage();
  void send_to_all(int signal, const std::string& why);

  LaunchRules rules_;
  LaunchOutput output_;
  const WriteLines& log_ = output_.err;
  StopSignal& stop_;
  MemoryKills memory_kills_;
  RoleGuard guard_;
  std::optional<RendezvousEvent> rendezvous_;  // none if the roles do not meet
  std::vector<LaunchedRole> roles_;
  std::optional<Deadline> next_look_;  // for stopped roles; none if no role is killed for that
  Stage stage_ = Stage::kRunning;
  std::optional<Deadline> stage_end_;
  std::string ending_because_;            // the reason for ending the roles, for log lines
  std::array<int, 65> times_received_{};  // signals received, by signal number
  bool asked_to_stop_ = false;
  bool stopped_by_failure_ = false;
  bool ends_before_training_ = false;
  std::string cause_;  // of the job's failure
  bool is_cause_certain_ = false;
};

}  // namespace syncopate
