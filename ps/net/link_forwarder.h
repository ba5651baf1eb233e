// A slow link on purpose: takes the callers of a public port on to a listener of this process and
// lets their bytes through late and at a limited rate, both ways. Whoever listens has one: the ring
// over TCP (strategies/collective) and the data socket of a parameter server (ps/server).
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "ps/net/connection.h"
#include "ps/net/link.h"

namespace syncopate {

// Each direction has one rate, which all connections share (slow_stream.h). Calling itself takes no
// longer than without. An end and a reset are passed on behind what was sent before them. A
// connection's memory is bounded: what exceeds it waits in the sender's socket.
// Thread-safe; a thread of its own does the work.
class LinkForwarder {
 public:
  // Callers of `listener` reach `target_port` of 127.0.0.1; where nobody listens there, their
  // connections are reset. Throws FileError.
  LinkForwarder(Listener listener, std::uint16_t target_port, const Link& link);
  LinkForwarder(const LinkForwarder&) = delete;
  LinkForwarder& operator=(const LinkForwarder&) = delete;
  // Waits for nobody: what is under way is lost, and every connection closed.
  ~LinkForwarder();

  std::uint16_t port() const noexcept { return port_; }  // where callers call

 private:
  class Connections;

  std::uint16_t port_;
  std::unique_ptr<Connections> connections_;
  std::jthread thread_;  // last: it uses them
};

}  // namespace syncopate
