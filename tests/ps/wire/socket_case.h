// What tests of sockets have in common: one thread owns all of them, and waits as owners do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ps/wire/socket.h"

namespace syncopate::ps::wire {

// Until the condition holds: flushes the sockets, asks, and sleeps in poll(2) until one of their
// descriptors is readable, with nothing else to wake it. Returns false after ten seconds.
bool wait_until(const std::vector<Socket*>& sockets, const std::function<bool()>& condition);

// The next message of `receiver`; a failed test and an empty envelope when none comes.
Envelope await_message(Socket& receiver, std::vector<Socket*> others);
void await_link(Socket& dealer, LinkEvent event, std::vector<Socket*> others = {});

// A Heartbeat of step `number`, and the bytes behind it.
Envelope numbered(std::string peer, std::int64_t number,
                  std::vector<std::vector<std::byte>> bytes = {});
std::int64_t number_of(const Envelope& message);

// The one end of a connection that is up, with its other end.
struct Line {
  explicit Line(const SocketLimits& limits = {});
  std::unique_ptr<Socket> call(const std::string& routing_id);

  Context context;
  std::unique_ptr<Socket> server;
};

}  // namespace syncopate::ps::wire
