// Continues the roles of a launch that are stopped (SIGSTOP) when the launcher ends: the kernel
// then sends every role SIGTERM, which a stopped process does not receive before it continues.
#pragma once

#include <sys/types.h>

#include "models/base/file_descriptor.h"

namespace syncopate {

// A RoleGuard is a process without a parent that ends with the launcher. It is used by one thread
// only, and the process may have no other thread, because the class forks.
class RoleGuard {
 public:
  // Starts the guard's process. Throws FileError if that is impossible.
  RoleGuard();

  // Called when a role's process has been started, and when it has ended.
  void add(pid_t process) const noexcept { send(process); }
  void remove(pid_t process) const noexcept { send(-process); }

 private:
  void send(pid_t message) const noexcept;

  FileDescriptor launcher_end_;  // of a pipe, which closes when the launcher ends
};

}  // namespace syncopate
