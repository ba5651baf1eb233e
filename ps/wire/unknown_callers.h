// The connections of a listening ZeroMQ socket that have not sent a greeting of this job. Any
// program can connect, and ZeroMQ limits neither the number of connections nor the bytes of a
// message that it receives. So this class closes the connections that exceed CallerLimits.
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
  // The most unknown callers at a time. Beyond this number the oldest are closed.
  std::size_t most = 256;
  // The longest time from the opening of a connection to its greeting.
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  // The most bytes that a caller may send before its greeting is complete; a greeting has up to 1
  // MiB.
  std::uint64_t most_bytes = 17U << 16U;
};

// Watches the connections that other programs open to one listening socket. Closes a connection
// that exceeds CallerLimits before a greeting of this job has arrived over it. Used by the socket's
// thread only. A connection is named by its descriptor, which ZeroMQ owns. ZeroMQ may close a
// descriptor and reuse its number for a new connection just when this class closes the old
// connection. Then this class closes the new connection by mistake, and the new caller connects
// again.
class UnknownCallers {
 public:
  explicit UnknownCallers(const CallerLimits& limits) : limits_(limits) {}

  void on_opened(int descriptor);
  void on_closed(int descriptor);
  // Makes the connection known, so that it is not closed any more. Called for each greeting of this
  // job that arrives over the connection, after all earlier openings and closings were reported.
  // Does nothing if the connection has closed in the meantime.
  void accept(int descriptor);

  // Closes the connections that exceed the limits, if 10 ms have passed since the last check.
  // Before the call, all openings and closings that ZeroMQ has reported must have been passed to
  // on_opened() and on_closed().
  void close_overdue();
  // Returns the time until close_overdue() must be called again; nullopt if there are no unknown
  // callers.
  std::optional<std::chrono::nanoseconds> due() const;
  // Returns the number of connections that ended without a greeting of this job, closed by this
  // class or by the other end.
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
