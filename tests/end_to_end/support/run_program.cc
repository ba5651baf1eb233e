#include "tests/end_to_end/support/run_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

int require(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string("test set-up: ") + what + " failed");
  return result;
}

// Calls pidfd_open() as a system call, because glibc 2.36 declares its wrapper without extern "C".
int open_process(pid_t pid) {
  return require(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), "pidfd_open");
}

int count(const std::string& text, const std::string& part) {
  int times = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++times;
  return times;
}

std::string contents(int descriptor) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0;
       (n = pread(descriptor, part.data(), part.size(), static_cast<off_t>(text.size()))) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  return text;
}

// Returns the program under test. An installed test (deploy/cmake/Installation.cmake) uses the
// program that was installed with it.
std::string program_under_test() {
  namespace fs = std::filesystem;
  const fs::path prefix = fs::read_symlink("/proc/self/exe").parent_path() / fs::path("../../..");
  const fs::path installed = (prefix / "bin/syncopate").lexically_normal();
  return fs::exists(installed) ? installed.string() : SYNCOPATE_PROGRAM;
}

}  // namespace

RunningProgram::RunningProgram(const std::vector<std::string>& arguments,
                               std::chrono::seconds limit)
    : end_(std::chrono::steady_clock::now() + limit * (SYNCOPATE_SANITIZED ? 5 : 1)),
      out_(require(memfd_create("out", MFD_CLOEXEC), "memfd_create")),
      err_(require(memfd_create("err", MFD_CLOEXEC), "memfd_create")) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // The leak checker is told to ignore Open MPI, which keeps memory until its modules are unloaded;
  // the checker cannot attribute the memory after that.
  if (std::find(arguments.begin(), arguments.end(), "mpi") != arguments.end()) {
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out_, 1);
  posix_spawn_file_actions_adddup2(&files, err_, 2);
  const int failed = posix_spawnp(&pid_, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  require(-failed, "posix_spawn");
  pidfd_ = open_process(pid_);
}

RunningProgram::~RunningProgram() {
  if (!waited_) {
    send(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int descriptor : {out_, err_, pidfd_}) close(descriptor);
}

void RunningProgram::send(int signal) const { kill(pid_, signal); }

int RunningProgram::remaining_milliseconds() const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      end_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

bool RunningProgram::wait_until(const std::filesystem::path& folder,
                                const std::function<bool()>& is_true) const {
  const int changes = require(inotify_init1(IN_NONBLOCK | IN_CLOEXEC), "inotify_init1");
  require(inotify_add_watch(changes, folder.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO),
          "inotify_add_watch");
  bool found = false;
  while (!(found = is_true())) {
    std::array<pollfd, 2> sources{pollfd{changes, POLLIN, 0}, pollfd{pidfd_, POLLIN, 0}};
    if (poll(sources.data(), sources.size(), remaining_milliseconds()) <= 0) break;
    if (sources[1].revents != 0) break;
    std::array<char, 4096> ignored{};
    while (read(changes, ignored.data(), ignored.size()) > 0) {
    }
  }
  close(changes);
  return found;
}

bool RunningProgram::wait_until_file_has(const std::filesystem::path& file, const std::string& text,
                                         int times) const {
  return wait_until(file.parent_path(), [&] { return count(read_text(file), text) >= times; });
}

bool RunningProgram::wait_until_err_has(const std::string& text) const {
  while (remaining_milliseconds() > 0) {
    if (contents(err_).find(text) != std::string::npos) return true;
    pollfd ended{pidfd_, POLLIN, 0};
    if (poll(&ended, 1, 1) != 0) return contents(err_).find(text) != std::string::npos;
  }
  return false;
}

std::string RunningProgram::err_so_far() const { return contents(err_); }

bool RunningProgram::ends_within(std::chrono::milliseconds time) const {
  pollfd ended{pidfd_, POLLIN, 0};
  const int left = std::min(static_cast<int>(time.count()), remaining_milliseconds());
  return poll(&ended, 1, left) != 0 || remaining_milliseconds() == 0;
}

ProgramResult RunningProgram::wait() {
  ProgramResult result;
  pollfd ended{pidfd_, POLLIN, 0};
  if (poll(&ended, 1, remaining_milliseconds()) <= 0) {
    result.timed_out = true;
    send(SIGKILL);
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  waited_ = true;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.ended_by_signal = WTERMSIG(status);
  result.out = contents(out_);
  result.err = contents(err_);
  return result;
}

std::vector<std::string> syncopate_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program_under_test());
  return arguments;
}

ProgramResult run_syncopate(std::vector<std::string> arguments, std::chrono::seconds limit) {
  return RunningProgram(syncopate_command(std::move(arguments)), limit).wait();
}

ProgramResult run_program(const std::vector<std::string>& arguments, std::chrono::seconds limit) {
  return RunningProgram(arguments, limit).wait();
}

ProgramResult successful(ProgramResult result) {
  if (result.exit_code == 0) return result;
  throw std::runtime_error("the program ended with exit code " + std::to_string(result.exit_code) +
                           ": " + result.err);
}

void expect_failure(const ProgramResult& result, int exit_code,
                    const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  for (const std::string& part : parts) EXPECT_TRUE(contains(result.err, part));
}

void expect_failure_in_one_line(const ProgramResult& result, int exit_code,
                                const std::vector<std::string>& parts) {
  expect_failure(result, exit_code, parts);
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
}

std::string read_text(const std::filesystem::path& file) {
  const std::ifstream stream(file, std::ios::binary);
  // This function reads without iterators, which throw if a file of /proc vanishes with its
  // process.
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace syncopate::test
