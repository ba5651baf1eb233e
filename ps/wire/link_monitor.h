// What becomes of a socket's connections, as ZeroMQ tells it through a socket of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "ps/wire/context.h"

namespace syncopate::ps::wire {

enum class LinkNews : std::uint8_t {
  kOpened,   // TCP is connected; may be talking to anybody yet
  kGreeted,  // both sides speak ZMTP: messages can go
  kClosed,
  kRetried,  // ZeroMQ will connect again by itself
};

// One thread only, that of the socket, which must outlive it.
class LinkMonitor {
 public:
  // Before the socket is bound or connected.
  LinkMonitor(Context& context, const SocketHandle& socket);
  LinkMonitor(const LinkMonitor&) = delete;
  LinkMonitor& operator=(const LinkMonitor&) = delete;
  ~LinkMonitor();

  // A connection within this machine, once it is opened, has got reno as congestion control.
  std::optional<LinkNews> next();
  // As ZMQ_FD: take everything that next() has before waiting for it.
  int descriptor() const;

 private:
  const SocketHandle& watched_;
  SocketHandle news_;
};

}  // namespace syncopate::ps::wire
