// One role of a job as a child process of this one. It ends when we do, however we end; whoever
// holds it decides what its end means.
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
  std::string name;                    // "worker 0": in front of its lines, and in messages
  Role role = Role::kWorker;           // which rules are for it
  std::vector<std::string> arguments;  // [0]: the path of the program
  Environment::Variables environment;
  // Open in this child under the same number, and in no other; none: standard streams only. Stays
  // open here for as long as somebody keeps this.
  FileDescriptor inherited;
  std::vector<int> cpus;  // it may use these; none given: all of ours
  // Sent in place of the signals that ask to stop; 0: they are passed on as they came.
  int stop_signal = 0;
  // After the others; 0: together with them. The job may be over by then.
  std::chrono::milliseconds start_after{0};
};

struct RoleEnding {
  int exit_code = 0;
  int signal = 0;  // that ended it, or 0

  bool is_good() const noexcept { return exit_code == 0 && signal == 0; }
};
// "exited with 1", "was ended by signal 9 (SIGKILL)"
std::string describe(const RoleEnding& ending);

// One thread only, and the only one of the process: it forks.
class RoleProcess {
 public:
  // Starts it: in a process group of its own, so that Ctrl-C reaches it through us and once; stdin
  // empty, stdout and stderr into pipes, `signal_mask` in force. Throws FileError.
  RoleProcess(const RoleCommand& command, const sigset_t& signal_mask);
  RoleProcess(const RoleProcess&) = delete;
  RoleProcess& operator=(const RoleProcess&) = delete;
  ~RoleProcess();  // kills it if it still runs

  const std::string& name() const noexcept { return name_; }
  pid_t pid() const noexcept { return pid_; }
  // Read ends, non-blocking; each given away once.
  FileDescriptor take_out() noexcept { return std::move(out_); }
  FileDescriptor take_err() noexcept { return std::move(err_); }

  // Readable once it has ended; -1 after reap().
  int descriptor() const noexcept { return descriptor_.get(); }
  bool is_running() const noexcept { return static_cast<bool>(descriptor_); }
  // By SIGSTOP or a terminal: it can do nothing, not even end, until SIGCONT.
  bool is_stopped() const noexcept;
  // Does nothing once it has been reaped.
  void send(int signal) const noexcept;
  // `signal` asks to stop: passes it on as the role understands it.
  void ask_to_stop(int signal) const noexcept { send(stop_signal_ != 0 ? stop_signal_ : signal); }
  // How it ended. Waits until it has.
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
