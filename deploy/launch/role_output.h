// The output of a role: from the pipe that the role writes to, into whole lines with the role's
// name in front, "[worker 0] step 20".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// One thread only.
class OutputPrefixer {
 public:
  explicit OutputPrefixer(std::string_view name) : prefix_("[" + std::string(name) + "] ") {}

  // The lines that these bytes complete, each with prefix and newline. A line longer than
  // kLongestLine is broken.
  std::string add(std::string_view bytes);
  // What stands behind the last newline, as a line; "" when nothing does.
  std::string finish();

  static constexpr std::size_t kLongestLine = 64 << 10;

 private:
  std::string prefix_;
  std::string unfinished_;
};

// Takes whole lines. May wait for a slow reader: then the roles wait too, as in any pipeline.
using WriteLines = std::function<void(std::string_view lines)>;

struct LaunchOutput {
  WriteLines out;
  WriteLines err;  // the launcher's own lines too
};

// One thread only.
class RoleOutput {
 public:
  // pipe: a non-blocking read end.
  RoleOutput(FileDescriptor pipe, std::string_view role_name, WriteLines write)
      : pipe_(std::move(pipe)), lines_(role_name), write_(std::move(write)) {}

  // -1, which poll(2) passes over, after the role has closed its end.
  int descriptor() const noexcept { return pipe_.get(); }
  // Reads once and writes the lines that this completes. False when there is no more for now.
  bool forward();
  // Writes what is left and closes. Does not wait for a descendant that still holds the pipe.
  void finish();

 private:
  FileDescriptor pipe_;
  OutputPrefixer lines_;
  WriteLines write_;
};

}  // namespace syncopate
