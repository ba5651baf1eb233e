// A role over its incarnations in one group: what it is started with and when, the process while
// there is one, and how the last one ended. Whether it is started again is the group's affair.
#pragma once

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deploy/launch/role_output.h"
#include "deploy/launch/role_process.h"
#include "models/base/deadline.h"

namespace syncopate {

// One thread only, and the only one of the process: it forks.
class LaunchedRole {
 public:
  // Starts it, unless it comes later. `restarts`: how often it has been started again so far.
  // `signal_mask` is in force in the process and outlives us. Throws FileError.
  LaunchedRole(RoleCommand command, int restarts, LaunchOutput output, const sigset_t& signal_mask);

  const std::string& name() const noexcept { return command_.name; }
  bool is_server() const noexcept { return command_.role == Role::kServer; }
  bool is_worker() const noexcept { return command_.role == Role::kWorker; }
  int restarts() const noexcept { return restarts_; }

  bool comes_late() const noexcept { return command_.start_after.count() > 0; }
  bool has_come() const noexcept { return process_ != nullptr; }

  // Once it has come.
  RoleProcess& process() noexcept { return *process_; }
  const RoleProcess& process() const noexcept { return *process_; }
  RoleOutput& out() noexcept { return *out_; }
  RoleOutput& err() noexcept { return *err_; }

  bool is_running() const noexcept { return has_come() && process_->is_running(); }
  // When it is to be started, or started again; nothing: nobody asked for that.
  const std::optional<Deadline>& start_time() const noexcept { return start_time_; }
  bool has_ended() const noexcept { return !is_running() && !start_time_; }
  // Of the last incarnation that ended; a signal counts as 1.
  int exit_code() const noexcept { return exit_code_; }
  // The one that ended that incarnation, or 0.
  int signal() const noexcept { return signal_; }

  // Waits until the process has ended, and writes the rest of what it said.
  RoleEnding conclude();
  void restart_after(std::chrono::milliseconds back_off);
  // At its time: for the first time, or again: the same command with the same variables and the
  // same inherited descriptor. Throws FileError, and has then ended as before.
  void start();
  // It will not be started again, or not at all: closes here what the next incarnation would
  // inherit.
  void let_go() noexcept;
  // It was stopped and is told to go on, so that it can end.
  void wake();
  bool was_woken() const noexcept { return was_woken_; }
  // How it ended is nobody's trouble.
  void excuse() noexcept { exit_code_ = 0; }

 private:
  void start_process();

  RoleCommand command_;
  int restarts_;
  LaunchOutput output_;
  const sigset_t* signal_mask_;
  std::unique_ptr<RoleProcess> process_;
  std::optional<RoleOutput> out_;
  std::optional<RoleOutput> err_;
  std::optional<Deadline> start_time_;
  int exit_code_ = 0;
  int signal_ = 0;
  bool was_woken_ = false;
};

// As SIGTERM ends a server whose job is not over: by that signal, or with a line on it and exit
// code 1. A crash by another signal, or another code, is neither.
bool ended_as_asked(const LaunchedRole& role);
// Somebody trains, or will.
bool have_workers_left(const std::vector<LaunchedRole>& roles);  // false too where there are none
// There are workers, and each has ended well: what was to be trained is trained.
bool have_workers_ended_well(const std::vector<LaunchedRole>& roles);
bool has_a_worker_ended_well(const std::vector<LaunchedRole>& roles);
// There are servers, all have ended, and none of them is started again.
bool are_servers_gone(const std::vector<LaunchedRole>& roles);
// ... and each of them well: the job is over.
bool have_servers_ended_well(const std::vector<LaunchedRole>& roles);
// Whoever still runs came later than the others.
bool do_only_late_ones_run(const std::vector<LaunchedRole>& roles);

}  // namespace syncopate
