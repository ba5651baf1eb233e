// Simulates a slow network link: forwards connections from a public port to a listener of this
// process, with a delay and a limited rate in both directions. Used for the TCP ring
// (strategies/collective) and for the data socket of a parameter server (ps/server).
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "ps/net/connection.h"
#include "ps/net/slow_link.h"

namespace syncopate {

// Forwards the connections to one listener over a simulated link. All these connections share the
// rate of each direction (slow_link.h). The delay does not apply to the set-up of a connection. The
// end or reset of a connection is forwarded after the bytes sent before it. The memory per
// connection is limited; further bytes wait in the sender's socket. Thread-safe; a thread of the
// forwarder does the work.
class LinkForwarder {
 public:
  // Forwards the callers of `listener` to `target_port` at 127.0.0.1. Resets a caller's connection
  // when no socket listens at that port. Throws FileError.
  LinkForwarder(Listener listener, std::uint16_t target_port, const Link& link);
  LinkForwarder(const LinkForwarder&) = delete;
  LinkForwarder& operator=(const LinkForwarder&) = delete;
  // Closes every forwarded connection without waiting; bytes that are not delivered yet are lost.
  ~LinkForwarder();

  std::uint16_t port() const noexcept { return port_; }  // the public port

 private:
  class Connections;

  std::uint16_t port_;
  std::unique_ptr<Connections> connections_;
  std::jthread thread_;  // declared last: it uses the other members
};

}  // namespace syncopate
