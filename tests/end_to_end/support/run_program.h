// Runs the program under test as a user would, and kills it when a time limit has passed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace syncopate::test {

// Appends the second list of command-line arguments to the first.
inline std::vector<std::string> operator+(std::vector<std::string> a,
                                          const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Limits how long a program that hangs is waited for. More than ten times the usual duration of
// most programs of the tests, which is a few seconds, and less than the time limit of a test.
inline constexpr std::chrono::seconds kProgramLimit(300);

struct ProgramResult {
  int exit_code = -1;       // -1 if a signal ended the process
  int ended_by_signal = 0;  // also SIGKILL, if the time limit passed
  bool timed_out = false;
  std::string out;
  std::string err;
};

// A RunningProgram is one process that runs a program. Only one thread may use a RunningProgram.
class RunningProgram {
 public:
  // Starts the program arguments[0]. The time limit counts from this call.
  explicit RunningProgram(const std::vector<std::string>& arguments,
                          std::chrono::seconds limit = kProgramLimit);
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram();  // kills the process if it still runs

  pid_t pid() const noexcept { return pid_; }
  void send(int signal) const;
  // Evaluates `is_true` whenever a file in `folder` has changed. Returns false if the program ended
  // or the time limit passed before `is_true` returned true.
  bool wait_until(const std::filesystem::path& folder, const std::function<bool()>& is_true) const;
  // Waits until `file` contains `text` at least `times` times.
  bool wait_until_file_has(const std::filesystem::path& file, const std::string& text,
                           int times = 1) const;
  // Waits until the stderr of the process contains the text.
  bool wait_until_err_has(const std::string& text) const;
  std::string err_so_far() const;  // what the process has written to stderr
  // Waits up to `time`. Returns whether the process ended, or reached its own limit, within `time`.
  bool ends_within(std::chrono::milliseconds time) const;
  ProgramResult wait();

 private:
  int remaining_milliseconds() const;

  std::chrono::steady_clock::time_point end_;
  int out_ = -1;
  int err_ = -1;
  int pidfd_ = -1;
  pid_t pid_ = 0;
  bool waited_ = false;
};

// Runs the program arguments[0] and waits until it ends.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          std::chrono::seconds limit = kProgramLimit);
// Runs `syncopate` with these arguments and waits until it ends.
ProgramResult run_syncopate(std::vector<std::string> arguments,
                            std::chrono::seconds limit = kProgramLimit);
std::vector<std::string> syncopate_command(std::vector<std::string> arguments);

// Returns the result of a program that ended with exit code 0. Throws with its stderr if it ended
// otherwise, which fails the test.
ProgramResult successful(ProgramResult result);
// Expects this exit code, and all of these parts in stderr.
void expect_failure(const ProgramResult& result, int exit_code,
                    const std::vector<std::string>& parts);
// Does the same, and expects that stderr has one line.
void expect_failure_in_one_line(const ProgramResult& result, int exit_code,
                                const std::vector<std::string>& parts);

// Returns the content of the file; "" if the file does not exist.
std::string read_text(const std::filesystem::path& file);

}  // namespace syncopate::test
