// Provides helpers for tests of sockets: one thread owns all sockets, and waits in poll(2) as
// owners do.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ps/wire/zmq_socket.h"

namespace syncopate::ps::wire {

// Repeats until `condition` holds: flushes the sockets and sleeps in poll(2) until one of their
// descriptors is readable. Returns false after 60 seconds.
bool wait_until(const std::vector<Socket*>& sockets, const std::function<bool()>& condition);

// Returns the next message of `receiver`. Without one it fails the test and returns an empty
// envelope.
Envelope await_message(Socket& receiver, std::vector<Socket*> others);
void await_link(Socket& dealer, LinkEvent event, std::vector<Socket*> others = {});

// Returns a Heartbeat of step `number`, followed by these bytes.
Envelope numbered(std::string peer, std::int64_t number,
                  std::vector<std::vector<std::byte>> bytes = {});
std::int64_t number_of(const Envelope& message);

// Returns the limits of a server for which a Heartbeat of step 0 is the greeting of its job.
inline SocketLimits limits_with(const CallerLimits& callers) {
  SocketLimits limits{.callers = callers};
  limits.is_greeting = [](const MessageT& message) {
    return message.body.type == Body::Heartbeat && message.body.AsHeartbeat()->step == 0;
  };
  return limits;
}
// Returns the limits of a server that keeps callers without a greeting.
inline SocketLimits for_any_caller() {
  return limits_with({.timeout = std::chrono::hours(1), .most_bytes = UINT64_MAX});
}

// A Line has both ends of an established connection.
struct Line {
  explicit Line(const SocketLimits& limits = for_any_caller());
  std::unique_ptr<Socket> call();
  // Returns a caller whose greeting the server has received, before it looked at its connections.
  std::unique_ptr<Socket> call_with_greeting();
  // Returns the routing id that the server has given to this caller.
  std::string routing_id_of(Socket& caller);

  Context context;
  std::unique_ptr<Socket> server;
};

}  // namespace syncopate::ps::wire
