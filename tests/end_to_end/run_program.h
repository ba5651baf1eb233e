// Runs the program under test as a user would, with a time limit after which it is killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace syncopate::test {

// One command line after the other.
inline std::vector<std::string> operator+(std::vector<std::string> a,
                                          const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct ProgramResult {
  int exit_code = -1;       // -1 when a signal ended it
  int ended_by_signal = 0;  // SIGKILL also when the limit passed
  bool timed_out = false;
  std::string out;
  std::string err;
};

// One process. One thread only.
class RunningProgram {
 public:
  // arguments[0] is the program. The limit counts from now.
  explicit RunningProgram(const std::vector<std::string>& arguments,
                          std::chrono::seconds limit = std::chrono::seconds(60));
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram();  // kills it if it still runs

  pid_t pid() const noexcept { return pid_; }
  void send(int signal) const;
  // Asks whenever a file in `folder` has changed. False when the program ended or the limit passed
  // before it was true.
  bool wait_until(const std::filesystem::path& folder, const std::function<bool()>& is_true) const;
  // Until the file holds the text so many times.
  bool wait_until_file_has(const std::filesystem::path& file, const std::string& text,
                           int times = 1) const;
  // The same for what it has said on stderr so far.
  bool wait_until_err_has(const std::string& text) const;
  // It ended, or the limit passed, before so much time has.
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

// `syncopate` with these arguments, to its end.
ProgramResult run_syncopate(std::vector<std::string> arguments,
                            std::chrono::seconds limit = std::chrono::seconds(60));
std::vector<std::string> syncopate_command(std::vector<std::string> arguments);

// "" when the file is not there.
std::string read_text(const std::filesystem::path& file);

}  // namespace syncopate::test
