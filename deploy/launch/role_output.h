// One stream of a role, from the pipe it writes to into whole prefixed lines.
#pragma once

#include <functional>
#include <string_view>

#include "deploy/launch/output_prefixer.h"
#include "models/base/file_descriptor.h"

namespace syncopate {

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
