// Runs one role of a job as a child process of the launcher. The role ends when the launcher ends,
// for whatever reason. The owner of this object decides what the end of the role means for the job.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "models/base/environment.h"
#include "models/base/file_descriptor.h"
#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

struct RoleCommand {
  // The role's name, such as "worker 0", printed before each line of output and in messages.
  std::string name;
  Role role = Role::kWorker;           // decides which RoleRule applies after a failure
  std::vector<std::string> arguments;  // the arguments of the role; [0] is the path of the program
  Environment::Variables environment;
  // A descriptor of the launcher that only this child process inherits, under the same number as in
  // the launcher; empty if there is none. The descriptor stays open in the launcher as long as this
  // command exists.
  FileDescriptor inherited;
  // A descriptor of the launcher that this child process and others inherit, under the same number
  // as in the launcher; -1 if there is none.
  int shared = -1;
  std::vector<int> cpus;  // The CPUs that the role may use; empty means all CPUs of the launcher.
  // The signal that asks the role to stop; 0: the signal that the launcher received.
  int stop_signal = 0;
  // The delay of the start in milliseconds, counted from the start of the other roles; 0 starts the
  // role together with them. The job may be over before the delay has passed.
  std::chrono::milliseconds start_after{0};
};

struct RoleEnding {
  int exit_code = 0;
  int signal = 0;  // the signal that ended the process, or 0

  bool is_good() const noexcept { return exit_code == 0 && signal == 0; }
};
// Returns how a process ended, such as "exited with 1" or "was ended by signal 9 (SIGKILL)".
std::string describe(const RoleEnding& ending);

// Starts, observes and signals the process of a role. One thread only, and the launcher may have no
// other thread, because the class forks.
class RoleProcess {
 public:
  // Starts the role's process in its own process group, so that Ctrl-C reaches it only once,
  // through the launcher. stdin is empty, stdout and stderr are pipes, and `signal_mask` applies.
  // Throws FileError if the process cannot be started.
  RoleProcess(const RoleCommand& command, const sigset_t& signal_mask);
  RoleProcess(const RoleProcess&) = delete;
  RoleProcess& operator=(const RoleProcess&) = delete;
  ~RoleProcess();  // kills the process if it still runs

  const std::string& name() const noexcept { return name_; }
  pid_t pid() const noexcept { return pid_; }
  // Return the non-blocking read ends of the process's output pipes. Each can be taken once.
  FileDescriptor take_out() noexcept { return std::move(out_); }
  FileDescriptor take_err() noexcept { return std::move(err_); }

  // Returns a descriptor that becomes readable when the process has ended; -1 after reap().
  int descriptor() const noexcept { return descriptor_.get(); }
  bool is_running() const noexcept { return static_cast<bool>(descriptor_); }
  // True if SIGSTOP or a terminal has stopped the process. A stopped process can end by itself only
  // after SIGCONT.
  bool is_stopped() const noexcept;
  // Sends a signal to the process. Does nothing after reap().
  void send(int signal) const noexcept;
  // Asks the process to stop with `signal`, or with the command's `stop_signal` if it has one.
  void ask_to_stop(int signal) const noexcept { send(stop_signal_ != 0 ? stop_signal_ : signal); }
  // Waits until the process has ended, and returns how it ended.
  RoleEnding reap();

 private:
  std::string name_;
  int stop_signal_;
  pid_t pid_ = -1;
  FileDescriptor descriptor_;
  FileDescriptor out_;
  FileDescriptor err_;
};

}  // namespace syncopate
