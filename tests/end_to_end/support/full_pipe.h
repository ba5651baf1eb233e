// A pipe of one page that is full from the start, as the output of a program whose reader stands
// still.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate::test {

class FullPipe {
 public:
  // Creates a named pipe.
  explicit FullPipe(std::filesystem::path path);
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  ~FullPipe();

  // Returns a command that runs `command` with the pipe at these redirections of the shell, such as
  // ">$P 2>&1".
  std::vector<std::string> receiving(const std::string& redirections,
                                     const std::vector<std::string>& command) const;
  // Returns what the pipe holds, without the bytes that filled it. Does not wait.
  std::string read_all();

 private:
  std::filesystem::path path_;
  int both_ends_ = -1;
};

}  // namespace syncopate::test
