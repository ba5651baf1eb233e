// What happens to the connections of a ZeroMQ socket: the monitor that reports it, and the logic
// that connects a DEALER again where ZeroMQ alone would give up.
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
  kHandshake,  // both sides use ZMTP: messages can be sent
  kClosed,
  kRetried,  // ZeroMQ will connect again by itself
};

// Reads ZeroMQ's monitor of a socket. One thread only, that of the socket; the socket must outlive
// the monitor.
class LinkMonitor {
 public:
  // Call it before the socket is bound or connected.
  LinkMonitor(Context& context, const SocketHandle& socket);
  LinkMonitor(const LinkMonitor&) = delete;
  LinkMonitor& operator=(const LinkMonitor&) = delete;
  ~LinkMonitor();

  // Returns the next change, if there is one. A connection within this machine gets reno as
  // congestion control when it opens.
  std::optional<LinkChange> next();
  // Edge-triggered like ZMQ_FD: call next() until it returns nothing before waiting for it.
  int descriptor() const;

 private:
  const SocketHandle& watched_;
  SocketHandle events_;
};

// Keeps a DEALER connecting. One thread only, that of the socket; the socket must outlive it.
class Reconnector {
 public:
  // Starts to connect in the background.
  Reconnector(const SocketHandle& socket, const Endpoint& to);

  void on_link_change(LinkChange change);
  // The time until reconnect_if_due() has something to do; empty while ZeroMQ connects by itself.
  std::optional<std::chrono::nanoseconds> due() const;
  void reconnect_if_due();
  std::string_view target() const noexcept { return target_; }

 private:
  void connect();

  const SocketHandle& socket_;
  const std::string target_;
  const bool has_name_;  // the host is a name, not an address
  bool uses_ipv6_;
  int retries_ = 0;
  std::optional<Deadline> reconnect_at_;
};

}  // namespace syncopate::ps::wire
