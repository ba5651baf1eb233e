#include "deploy/launch/role_process.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "models/base/affinity.h"
#include "models/base/errors.h"
#include "models/base/process_limits.h"

namespace syncopate {
namespace {

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw FileError(describe_errno("create", "a pipe", errno));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Makes only the launcher's end of an output pipe non-blocking; the role's end stays blocking.
FileDescriptor non_blocking(FileDescriptor descriptor) {
  fcntl(descriptor.get(), F_SETFL, O_NONBLOCK);
  return descriptor;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// ChildPlan holds everything that the child needs. It is prepared before the fork, because the
// child must not allocate memory after the fork.
struct ChildPlan {
  char* const* argv;
  char* const* environment;
  int null;
  int out;
  int err;
  int inherited;  // a descriptor that the child inherits, or -1
  int shared;     // a second one, or -1
  int report;     // a pipe that receives errno if the program cannot start
  pid_t parent;
  const sigset_t* signal_mask;
  const cpu_set_t* cpus;  // the CPUs to bind the child to, or null for all CPUs
};

[[noreturn]] void become(const ChildPlan& plan) noexcept {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != plan.parent) _exit(1);  // the parent ended before prctl() took effect
  // The child resets the signals that the launcher ignores to their defaults, because an ignored
  // signal stays ignored in the new program.
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &usual, nullptr);
  sigaction(SIGXFSZ, &usual, nullptr);
  if (plan.cpus != nullptr) sched_setaffinity(0, sizeof *plan.cpus, plan.cpus);
  dup2(plan.null, STDIN_FILENO);
  dup2(plan.out, STDOUT_FILENO);
  dup2(plan.err, STDERR_FILENO);
  if (plan.inherited >= 0) fcntl(plan.inherited, F_SETFD, 0);
  if (plan.shared >= 0) fcntl(plan.shared, F_SETFD, 0);
  sigprocmask(SIG_SETMASK, plan.signal_mask, nullptr);
  execve(plan.argv[0], plan.argv, plan.environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(plan.report, &error, sizeof error);
  _exit(127);
}

}  // namespace

std::string describe(const RoleEnding& ending) {
  if (ending.signal == 0) return fmt::format("exited with {}", ending.exit_code);
  const char* short_name = sigabbrev_np(ending.signal);
  return fmt::format("was ended by signal {}{}", ending.signal,
                     short_name == nullptr ? "" : fmt::format(" (SIG{})", short_name));
}

RoleProcess::RoleProcess(const RoleCommand& command, const sigset_t& signal_mask)
    : name_(command.name), stop_signal_(command.stop_signal) {
  std::vector<std::string> variables;
  for (const auto& [variable, value] : command.environment) {
    variables.emplace_back(variable).append("=").append(value);
  }
  std::vector<std::string> arguments = command.arguments;
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> environment = pointers(variables);
  const FileDescriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) throw FileError(describe_errno("open", "/dev/null", errno));
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Pipe report = make_pipe();
  const cpu_set_t cpus = to_cpu_set(command.cpus);
  const ChildPlan plan{.argv = argv.data(),
                       .environment = environment.data(),
                       .null = null.get(),
                       .out = out.write_end.get(),
                       .err = err.write_end.get(),
                       .inherited = command.inherited.get(),
                       .shared = command.shared,
                       .report = report.write_end.get(),
                       .parent = getpid(),
                       .signal_mask = &signal_mask,
                       .cpus = command.cpus.empty() ? nullptr : &cpus};
  pid_ = fork();
  if (pid_ == 0) become(plan);
  if (pid_ < 0) {
    const int error = errno;
    throw FileError(describe_errno("start", name_, error) +
                    (error == EAGAIN ? ": " + thread_advice() : ""));
  }

  report.write_end.reset();
  int error = 0;
  // A successful start of the program closes the pipe, so that this read ends without a byte.
  if (read(report.read_end.get(), &error, sizeof error) == sizeof error) {
    waitpid(pid_, nullptr, 0);
    throw FileError(describe_errno("start", command.arguments.front(), error));
  }
  // Uses syscall(), because glibc 2.36 declares its pidfd_open() without extern "C".
  descriptor_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!descriptor_) {
    const int refused = errno;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    throw FileError(describe_errno("watch", name_, refused));
  }
  out_ = non_blocking(std::move(out.read_end));
  err_ = non_blocking(std::move(err.read_end));
}

RoleProcess::~RoleProcess() {
  if (!is_running()) return;
  send(SIGKILL);
  reap();
}

bool RoleProcess::is_stopped() const noexcept {
  siginfo_t found{};
  return is_running() &&
         waitid(P_PID, static_cast<id_t>(pid_), &found, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         found.si_pid == pid_;
}

void RoleProcess::send(int signal) const noexcept {
  if (is_running()) kill(pid_, signal);
}

RoleEnding RoleProcess::reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  descriptor_.reset();
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status)};
}

}  // namespace syncopate
