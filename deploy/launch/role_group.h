// Runs the roles (processes of workers and servers) of one job from their common start to their
// end. The group forwards output and stop signals. After the failure of a role the group starts
// this role again or ends the other roles, according to the rules for this kind of role. A group is
// started once. If all roles are started again, `launch` makes a new group.
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

// Starts the roles of a job together, and watches and ends their processes. One thread only, and
// the process may have no other thread, because the class forks. `stop` must outlive the group.
class RoleGroup {
 public:
  // Starts the roles in the given order. restarts: how often all roles have been started again so
  // far. If a role cannot be started, kills the roles that run and throws FileError.
  RoleGroup(std::vector<RoleCommand> commands, const LaunchRules& rules, int restarts,
            const LaunchOutput& output, StopSignal& stop);

  // Waits until all roles have ended. Returns the worst exit code (exit_codes.h) of all roles. For
  // a role that was started again, the exit code of the last process counts. There is no deadline,
  // because training may take any time.
  int run();
  // True if a signal asked the group to stop. Roles that end after the signal do not count as
  // failed.
  bool was_asked_to_stop() const noexcept { return asked_to_stop_; }
  // True if the failure of a role ended the job or left it unfinished. False if the other workers
  // went on without the failed role and ended well; then only the exit code shows the failure.
  bool has_failed() const noexcept;
  // Returns one line that says why the exit code is not 0; "" if the last output line of a role
  // already says so, or if the group was asked to stop.
  std::string conclusion() const;
  // Returns the largest number of restarts of any role.
  int restarts() const noexcept;

 private:
  enum class Stage : std::uint8_t { kRunning, kWaiting, kGrace, kKilled };

  const RoleRule& rule_of(const LaunchedRole& role) const noexcept;
  // True if the job runs and no server except this role is missing, so that the job can accept the
  // role again.
  bool accepts_restart(const LaunchedRole& role) const noexcept;
  bool has_restart_left(const LaunchedRole& role) const noexcept;
  bool may_restart(const LaunchedRole& role) const noexcept;

  // True if the other roles wait for this role at their rendezvous.
  bool is_awaited(const LaunchedRole& role) noexcept;
  // Stores the cause of the job's failure. The first cause is kept, but a certain cause replaces an
  // uncertain cause. The exit of the first role is an uncertain cause, because it may follow from
  // the failure of another role that has not ended yet.
  void set_cause(std::string cause, bool is_certain);

  void wait_for_events();
  int poll_milliseconds() const noexcept;
  void pass_on_signals();
  void conclude(LaunchedRole& role);
  // Reports the failure of a role and applies the rule for this kind of role. what: how the role
  // ended. has_exited: whether the role was started and ended by itself, not by a signal.
  void evaluate_exit(LaunchedRole& role, const std::string& what, bool has_exited);
  // True if the servers ended well before they admitted the late worker, and launch then ended that
  // worker.
  bool started_too_late(const LaunchedRole& role) const noexcept;
  // True if the worker was stopped by SIGSTOP while the others completed the job.
  bool was_stopped_at_the_end(const LaunchedRole& role) const noexcept;
  // True if the server ended badly after the last worker had ended well. If server 0 is started
  // again at that time, no worker comes to its rendezvous, and the other servers wait for server 0.
  bool ended_after_the_job(const LaunchedRole& role) const noexcept;
  void start_due_roles();
  // Kills roles that have been stopped for rules_.stopped_timeout, if they can be started again
  // alone, or if the other roles wait for them at the rendezvous.
  void kill_stopped_roles();
  // Cancels planned starts of roles that the job can no longer admit, and begins to end the other
  // roles when the last worker or the last server has ended.
  void end_job_if_done();
  // Shortens the wait for late workers when the training is complete, because the servers may not
  // admit them any more.
  void shorten_wait_for_late_workers();
  // Begins to wait up to `timeout` until the roles end by themselves, and continues stopped roles
  // so that they can end. because: the reason, for the log.
  void begin_ending(std::string because, std::chrono::milliseconds timeout);
  // Ends the job before training has begun. Nothing can be lost, so the other roles are killed
  // after `timeout`, and their ends are not reported. because: the reason, for the log.
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
  std::optional<RendezvousEvent> rendezvous_;  // nullopt if the roles do not meet
  std::vector<LaunchedRole> roles_;
  // When to look for stopped roles; nullopt if no role is killed for being stopped.
  std::optional<Deadline> next_look_;
  Stage stage_ = Stage::kRunning;
  std::optional<Deadline> stage_end_;
  std::string ending_because_;            // the reason for ending the roles, for log lines
  std::array<int, 65> times_received_{};  // signals received, by signal number
  bool asked_to_stop_ = false;
  bool stopped_by_failure_ = false;
  bool ends_before_training_ = false;
  std::string cause_;  // cause of the job's failure
  bool is_cause_certain_ = false;
};

}  // namespace syncopate
