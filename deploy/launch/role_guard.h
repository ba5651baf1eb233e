// Continues stopped roles (SIGSTOP) of a launch when the launcher ends. The kernel sends SIGTERM to
// every role at this time, but a stopped process receives the signal only after it continues.
#pragma once

#include <sys/types.h>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Starts the guard, a process that outlives the launcher. When the launcher has ended, the guard
// sends SIGCONT to all roles that still run, and then ends. One thread only, and the launcher may
// have no other thread, because the class forks.
class RoleGuard {
 public:
  // Starts the guard's process. Throws FileError if it cannot be started.
  RoleGuard();

  // Tell the guard that a role's process has been started (add) or has ended (remove).
  void add(pid_t process) const noexcept { send(process); }
  void remove(pid_t process) const noexcept { send(-process); }

 private:
  void send(pid_t message) const noexcept;

  FileDescriptor launcher_end_;  // the launcher's end of a pipe; it closes when the launcher ends
};

}  // namespace syncopate
