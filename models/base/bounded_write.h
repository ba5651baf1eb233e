// Writes that end although nothing reads the other end of a pipe or a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace syncopate {

struct Written {
  std::size_t bytes = 0;
  int error = 0;  // errno of a write that failed; 0: all bytes are written, or the time is over
};

// Writes to a descriptor until all bytes are written, a write fails, or `timeout` has passed
// without room for them: about 0.1 s later if another process fills the pipe too. Does not
// change the descriptor's flags, which other processes may share. Uses the signal SIGURG.
Written write_within(int descriptor, std::string_view bytes, std::chrono::milliseconds timeout);

}  // namespace syncopate
