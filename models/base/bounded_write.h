// Writes with a timeout, for a pipe or a terminal that nothing reads.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace syncopate {

struct Written {
  std::size_t bytes = 0;
  int error = 0;  // errno of a failed write; 0: all bytes are written or the timeout has passed
};

// Writes to a descriptor until all bytes are written, a write fails, or `timeout` has passed. If
// another process writes to the same pipe, the call may end about 0.1 s after the timeout. Does not
// change the descriptor's flags, which other processes may share. Uses the signal SIGURG.
Written write_within(int descriptor, std::string_view bytes, std::chrono::milliseconds timeout);

}  // namespace syncopate
