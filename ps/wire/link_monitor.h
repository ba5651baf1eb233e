// LinkMonitor reports what happens to the connections of a ZeroMQ socket. Reconnector connects a
// DEALER again where ZeroMQ alone would give up.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/base/deadline.h"
#include "ps/net/endpoint.h"
#include "ps/wire/context.h"

namespace syncopate::ps::wire {

enum class LinkChange : std::uint8_t {
  kOpened,     // TCP is connected; the peer may still be any program
  kHandshake,  // the peer uses ZMTP: messages can be sent
  kClosed,
  kRetried,  // ZeroMQ will connect again by itself
};

// Reads ZeroMQ's monitor of a socket. This class does not use cppzmq's monitor_t, because monitor_t
// hides the socket from which it reads events. LinkMonitor needs this socket to remove the limit of
// the socket's queue, and to wait for the socket's descriptor. Used by the socket's thread only;
// the socket must outlive the monitor.
class LinkMonitor {
 public:
  // The monitor must be made before the socket is bound or connected.
  LinkMonitor(Context& context, zmq::socket_ref socket);
  LinkMonitor(const LinkMonitor&) = delete;
  LinkMonitor& operator=(const LinkMonitor&) = delete;
  ~LinkMonitor();

  struct Change {
    LinkChange kind = LinkChange::kOpened;
    int descriptor = -1;  // of the connection that opened or closed
  };
  // Returns the next change of a connection, if there is one. Sets the congestion control of a
  // connection within this machine to reno when the connection opens.
  std::optional<Change> next();
  // Returns a descriptor for poll(2) that becomes readable when next() may have a change. The
  // descriptor is edge-triggered like ZMQ_FD: before waiting for it, call next() until it returns
  // nullopt.
  int descriptor() const;

 private:
  zmq::socket_ref watched_;
  zmq::socket_t events_;
};

// Connects a DEALER socket, and connects it again where ZeroMQ does not. Used by the socket's
// thread only; the socket must outlive the object.
class Reconnector {
 public:
  // Starts to connect the DEALER in the background.
  Reconnector(zmq::socket_ref socket, const Endpoint& to);

  void on_link_change(LinkChange change);
  // Returns the time until reconnect_if_due() must be called; nullopt while ZeroMQ connects by
  // itself.
  std::optional<std::chrono::nanoseconds> due() const;
  void reconnect_if_due();
  std::string_view target() const noexcept { return target_; }

 private:
  void connect();

  zmq::socket_ref socket_;
  const std::string target_;
  const bool has_name_;  // the host is a name, not an address
  bool uses_ipv6_;
  int retries_ = 0;
  std::optional<Deadline> reconnect_at_;
};

}  // namespace syncopate::ps::wire
