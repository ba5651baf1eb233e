// Forwards the output of a role: reads the pipe that the role writes to, and writes whole lines
// that begin with the role's name, such as "[worker 0] step 20".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// An OutputPrefixer splits bytes into lines and puts the role's name in front of each line. One
// thread only may use it.
class OutputPrefixer {
 public:
  explicit OutputPrefixer(std::string_view name) : prefix_("[" + std::string(name) + "] ") {}

  // Returns the lines that these bytes complete, each with prefix and newline. A line longer than
  // kLongestLine is split.
  std::string add(std::string_view bytes);
  // Returns the text behind the last newline as a line; "" if there is no such text.
  std::string finish();

  static constexpr std::size_t kLongestLine = 64 << 10;

 private:
  std::string prefix_;
  std::string unfinished_;
};

// Receives whole lines. The call may wait for a slow reader; then the roles wait too, as in any
// pipeline.
using WriteLines = std::function<void(std::string_view lines)>;

struct LaunchOutput {
  WriteLines out;
  WriteLines err;  // also receives the launcher's own lines
};

// A RoleOutput reads the pipe of one role and writes its lines. One thread only may use it.
class RoleOutput {
 public:
  // `pipe` is a non-blocking read end.
  RoleOutput(FileDescriptor pipe, std::string_view role_name, WriteLines write)
      : pipe_(std::move(pipe)), lines_(role_name), write_(std::move(write)) {}

  // Returns the descriptor of the pipe, or -1, which poll(2) ignores, after the role has closed its
  // end.
  int descriptor() const noexcept { return pipe_.get(); }
  // Reads once and writes the lines that the bytes complete. Returns false if no more bytes are
  // available now.
  bool forward();
  // Writes the remaining bytes and closes the pipe. Does not wait for a descendant of the role that
  // still holds the pipe open.
  void finish();

 private:
  FileDescriptor pipe_;
  OutputPrefixer lines_;
  WriteLines write_;
};

}  // namespace syncopate
