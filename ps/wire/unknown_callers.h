// The connections of a listening ZeroMQ socket that have not sent a greeting of this job. Any
// program can connect, and ZeroMQ bounds neither the number of connections nor the bytes of a
// message that it collects. So these connections are closed here beyond some limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "models/base/deadline.h"

namespace syncopate::ps::wire {

struct CallerLimits {
  std::size_t most = 256;  // unknown callers at a time; the oldest are closed first
  std::chrono::milliseconds timeout = std::chrono::seconds(10);  // until the greeting
  std::uint64_t most_bytes = 17U << 16U;  // received until the greeting, which has up to 1 MiB
};

// Used by the thread of the ZeroMQ socket only. A connection is named by its descriptor, which
// belongs to ZeroMQ. If ZeroMQ has closed it in this moment and given its number to another
// connection, that one is closed, and its caller connects again.
class UnknownCallers {
 public:
  explicit UnknownCallers(const CallerLimits& limits) : limits_(limits) {}

  void on_opened(int descriptor);
  void on_closed(int descriptor);
  // The caller has sent a greeting of this job, perhaps not the first one. Called when the greeting
  // is received, after the changes of connections so far were reported. Does nothing if the
  // connection has closed since.
  void accept(int descriptor);

  // Closes the connections beyond the limits, if it is time to look. Called after all changes of
  // connections were reported.
  void close_overdue();
  // Returns the time until close_overdue() has to look again; empty without unknown callers.
  std::optional<std::chrono::nanoseconds> due() const;
  // Returns the number of connections that have ended, closed here or not, without a greeting.
  std::int64_t ended() const noexcept { return ended_; }

 private:
  using Callers = std::map<int, Deadline>;  // by descriptor: when the timeout ends

  Callers::iterator close(Callers::iterator caller, const char* reason);

  const CallerLimits limits_;
  Callers unknown_;
  std::set<int> known_;
  std::set<int> closed_;  // descriptors of connections that were reported as closed
  Deadline next_look_ = Deadline::after(std::chrono::nanoseconds(0));
  std::int64_t ended_ = 0;
  bool has_logged_ = false;
};

}  // namespace syncopate::ps::wire
