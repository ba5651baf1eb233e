// What a run's processes say: kept in a file, and read for who ended badly. Used by real_run.cc.
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

// One thread only.
class RunLog {
 public:
  // Throws FileError when it cannot be opened.
  explicit RunLog(const std::filesystem::path& path);

  // Standard output or standard error of the run. False at its end.
  bool read_from(std::size_t stream, int descriptor);

  // launch told of roles that ended badly and were not started again, and all of them are among
  // `killed`, which ended by SIGKILL as was wanted ("worker 1").
  bool tells_of_none_but(const std::set<std::string>& killed) const;
  // Why the run failed: the last word of the first role that ended badly, those killed excepted; of
  // a run without roles its last line. "" when nobody said anything.
  std::string reason(const std::set<std::string>& killed) const;

 private:
  struct BadEnd {
    std::string role;
    std::string how;  // "was ended by signal 9 (SIGKILL)"
    bool is_wanted(const std::set<std::string>& killed) const;
  };

  void keep(std::size_t stream, std::string_view text);
  void take_line(const std::string& line);
  void hear_launch(std::string_view words);

  FileDescriptor file_;
  std::array<std::string, 2> unfinished_;     // by stream
  std::string last_;                          // line of all
  std::map<std::string, std::string> lasts_;  // by role
  std::vector<BadEnd> bad_ends_;              // since all were started the last time
};

}  // namespace syncopate::bench
