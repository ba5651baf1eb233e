// Keeps a DEALER calling where ZeroMQ alone would give up or go on calling in vain.
#pragma once

#include <chrono>
#include <optional>

#include "models/base/deadline.h"
#include "ps/net/endpoint.h"
#include "ps/wire/context.h"
#include "ps/wire/link_monitor.h"

namespace syncopate::ps::wire {

// One thread only, that of the socket, which must outlive it.
class Dialer {
 public:
  // Connects in the background.
  Dialer(const SocketHandle& socket, const Endpoint& to);

  void hear(LinkNews news);
  // How long until redial() has something to do.
  std::optional<std::chrono::nanoseconds> due() const;
  // Calls anew if that is due.
  void redial();
  std::string_view target() const noexcept { return target_; }

 private:
  void dial();

  const SocketHandle& socket_;
  const std::string target_;
  const bool has_name_;
  bool wants_ipv6_;
  int retries_ = 0;
  std::optional<Deadline> hopeless_;
};

}  // namespace syncopate::ps::wire
