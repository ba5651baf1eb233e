// Writes the output of a run's processes to a file, and searches it for processes that failed. Used
// by real_run.cc.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/file_descriptor.h"

namespace syncopate::bench {

// Writes the output of the processes of one run to a log file, and finds failed processes in the
// output. One thread only.
class RunLog {
 public:
  // Opens the log file for the output of one run. Throws FileError when it cannot be opened.
  explicit RunLog(const std::filesystem::path& path);

  // Reads output of the run from `descriptor` and writes it to the log. stream: 0 for standard
  // output, 1 for standard error. Returns false at the end of the stream.
  bool read_from(std::size_t stream, int descriptor);

  // Returns whether the run failed only because of the wanted kills: `launch` reported failed
  // processes that it did not restart, and each of these processes is among `killed` (such as
  // "worker 1") and was ended by SIGKILL.
  bool has_only_wanted_failures(const std::set<std::string>& killed) const;
  // Returns why the run failed: the last line of the first failed process that is not among
  // `killed`, or, for a run with a single process, the last line of this process. Returns "" if
  // there was no output.
  std::string reason(const std::set<std::string>& killed) const;

 private:
  struct Failure {
    std::string role;
    std::string how;  // how it ended, such as "was ended by signal 9 (SIGKILL)"
    bool is_wanted(const std::set<std::string>& killed) const;
  };

  void keep(std::size_t stream, std::string_view text);
  void take_line(const std::string& line);
  void take_launch_line(std::string_view words);

  FileDescriptor file_;
  std::array<std::string, 2> unfinished_;          // an incomplete line of each stream
  std::string last_line_;                          // last line of all processes
  std::map<std::string, std::string> last_lines_;  // last line of each role
  std::vector<Failure> failures_;                  // failures since the last restart of the job
};

}  // namespace syncopate::bench
