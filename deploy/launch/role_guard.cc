#include "deploy/launch/role_guard.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>

#include "models/base/errors.h"
#include "models/base/process_limits.h"

namespace syncopate {
namespace {

// The guard's process. Reads from its standard input which processes run, until the launcher ends.
[[noreturn]] void guard_roles() {
  std::set<pid_t> running;
  pid_t message = 0;
  for (;;) {
    const ssize_t count = read(STDIN_FILENO, &message, sizeof message);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof message) break;
    if (message > 0) {
      running.insert(message);
    } else {
      running.erase(-message);
    }
  }
  for (const pid_t process : running) kill(process, SIGCONT);
  _exit(0);
}

}  // namespace

RoleGuard::RoleGuard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw FileError(describe_errno("create", "a pipe", errno));
  const FileDescriptor guard_end(ends[0]);
  launcher_end_.reset(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    // A session of its own keeps away the signals that a terminal or `timeout` sends to a group.
    setsid();
    // The guard holds no other file open, such as the socket of the rendezvous.
    dup2(guard_end.get(), STDIN_FILENO);
    syscall(SYS_close_range, 1U, ~0U, 0U);
    const pid_t guard = fork();
    if (guard != 0) _exit(guard < 0 ? errno : 0);
    guard_roles();
  }
  int status = errno << 8;
  if (child > 0) waitpid(child, &status, 0);
  if (status != 0) {
    throw FileError(describe_errno("start", "the guard of the roles", WEXITSTATUS(status)) +
                    (WEXITSTATUS(status) == EAGAIN ? ": " + thread_advice() : ""));
  }
}

void RoleGuard::send(pid_t message) const noexcept {
  // Without the guard's process, roles that are stopped do not end with the launcher.
  [[maybe_unused]] const ssize_t written = write(launcher_end_.get(), &message, sizeof message);
}

}  // namespace syncopate
