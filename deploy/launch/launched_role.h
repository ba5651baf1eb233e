// A role (a worker or a server) over all its restarts. A LaunchedRole has the command and the start
// time of the role, the running process and its output, and how the last process ended. The
// RoleGroup decides whether the role is started again.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/launch/output_queue.h"
#include "deploy/launch/role_process.h"
#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"

namespace syncopate {

// Splits output into lines and puts the role's name in front of each line. One thread only.
class OutputPrefixer {
 public:
  explicit OutputPrefixer(std::string_view name) : prefix_("[" + std::string(name) + "] ") {}

  // Adds bytes of output. Returns the lines that are complete now, each with prefix and newline. A
  // line longer than kLongestLine is split.
  std::string add(std::string_view bytes);
  // Returns the text after the last newline of the output as a line; "" if there is no such text.
  std::string finish();

  static constexpr std::size_t kLongestLine = 64 << 10;

 private:
  std::string prefix_;
  std::string unfinished_;
};

// A function that receives whole lines of output. It does not block.
using WriteLines = std::function<void(std::string_view lines)>;

struct LaunchOutput {
  WriteLines out;
  WriteLines err;  // also receives the launcher's own lines
  // The queues to which `out` and `err` write; null: they write to no queue. While a queue is
  // blocked, the launcher does not read the output that goes to this queue, so that the roles wait
  // as in a shell pipeline. The launcher still receives signals.
  OutputQueue* out_queue = nullptr;
  OutputQueue* err_queue = nullptr;
};

// Reads the output of a role from a pipe and writes whole lines that begin with the role's name,
// such as "[worker 0] step 20". One thread only.
class RoleOutput {
 public:
  // pipe: the read end of the role's output; must be non-blocking. write: gets the lines.
  RoleOutput(FileDescriptor pipe, std::string_view role_name, WriteLines write)
      : pipe_(std::move(pipe)), lines_(role_name), write_(std::move(write)) {}

  // Returns the descriptor of the pipe for poll(2). After the role has closed its end, returns -1,
  // which poll(2) ignores.
  int descriptor() const noexcept { return pipe_.get(); }
  // Reads once from the pipe and writes the lines that are complete. Returns false if no bytes were
  // available.
  bool forward();
  // Writes the remaining output and closes the pipe. Does not wait for a descendant of the role
  // that still holds the pipe open.
  void finish();

 private:
  FileDescriptor pipe_;
  OutputPrefixer lines_;
  WriteLines write_;
};

// Starts, restarts and observes the process of one role. One thread only, and the launcher may have
// no other thread, because the class forks.
class LaunchedRole {
 public:
  // Starts the role's process. For a late worker only plans the start, see start_time(). restarts:
  // how often the role has been started again so far. signal_mask: the signal mask of the process;
  // must outlive this object. Throws FileError if the process cannot be started.
  LaunchedRole(RoleCommand command, int restarts, LaunchOutput output, const sigset_t& signal_mask);

  const std::string& name() const noexcept { return command_.name; }
  bool is_server() const noexcept { return command_.role == Role::kServer; }
  bool is_worker() const noexcept { return command_.role == Role::kWorker; }
  int restarts() const noexcept { return restarts_; }

  bool starts_late() const noexcept { return command_.start_after.count() > 0; }
  bool was_started() const noexcept { return process_ != nullptr; }

  // Returns the role's process. The role must have been started before.
  RoleProcess& process() noexcept { return *process_; }
  const RoleProcess& process() const noexcept { return *process_; }
  RoleOutput& out() noexcept { return *out_; }
  RoleOutput& err() noexcept { return *err_; }

  bool is_running() const noexcept { return was_started() && process_->is_running(); }
  // Returns the time at which the role will be started or started again; nullopt if no start is
  // planned.
  const std::optional<Deadline>& start_time() const noexcept { return start_time_; }
  bool has_ended() const noexcept { return !is_running() && !start_time_; }
  // Returns the exit code of the last process of this role that has ended; 1 if a signal ended the
  // process.
  int exit_code() const noexcept { return exit_code_; }
  // Returns the signal that ended the last process of this role; 0 if the process exited by itself.
  int signal() const noexcept { return signal_; }

  // Waits until the role's process has ended, and writes the rest of its output.
  RoleEnding conclude();
  void restart_after(std::chrono::milliseconds back_off);
  // Starts the role's process, for the first time or again, with the same command, environment
  // variables and inherited descriptor. Called at start_time(). Throws FileError if the process
  // cannot be started; the role has then ended.
  void start();
  // Cancels a planned start and closes the descriptor that the next process of the role would
  // inherit. Called if the role will not be started again.
  void release() noexcept;
  // Checks whether the role's process is stopped. Returns the number of consecutive calls,
  // including this call, that found it stopped.
  int count_stopped() noexcept;
  // Continues the role's process with SIGCONT if it is stopped, so that it can end.
  void continue_if_stopped();
  bool was_continued() const noexcept { return was_continued_; }
  // Sets the exit code to 0, because the role's end is not a failure of the job.
  void clear_exit_code() noexcept { exit_code_ = 0; }

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
  int times_stopped_ = 0;
  bool was_continued_ = false;
};

// Returns whether the role ended because launch sent SIGTERM to it: SIGTERM ended the role, or its
// exit code is 1. A server exits with 1 if it receives SIGTERM before its job is over.
bool ended_as_asked(const LaunchedRole& role);
// True if at least one worker runs or is going to be started.
bool have_workers_left(const std::vector<LaunchedRole>& roles);
// True if the job has workers and all of them have ended well, so that the training is complete.
bool have_workers_ended_well(const std::vector<LaunchedRole>& roles);
bool has_a_worker_ended_well(const std::vector<LaunchedRole>& roles);
// True if the job has servers, all of them have ended, and none is going to be started again.
bool have_servers_ended(const std::vector<LaunchedRole>& roles);
// True if the job has servers and all of them have ended well, so that the job is over.
bool have_servers_ended_well(const std::vector<LaunchedRole>& roles);
// True if all roles that still run are late workers.
bool do_only_late_workers_run(const std::vector<LaunchedRole>& roles);

}  // namespace syncopate
