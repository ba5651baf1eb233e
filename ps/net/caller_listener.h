// Accepts connections of callers, which may be any program. Used by PendingConnections and
// DescriptorServer.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "ps/net/connection.h"

namespace syncopate {

// A listening socket that serves a limited number of callers at a time. Further callers wait in the
// socket's backlog. While this process has no free file descriptor, all new callers wait there. In
// each function, `callers` is the number of callers that are being served. One thread only.
class CallerListener {
 public:
  explicit CallerListener(Listener listener) : listener_(std::move(listener)) {}

  std::uint16_t port() const { return listener_.port(); }
  // Returns the descriptor that poll(2) should watch. Returns -1, which poll() ignores, while no
  // caller can be accepted; otherwise waiting callers would make poll() return at once.
  int descriptor(std::size_t callers) const noexcept {
    return is_full(callers) ? -1 : listener_.descriptor();
  }
  bool is_full(std::size_t callers) const noexcept {
    return lacks_descriptors_ || callers >= kMostCallers;
  }
  // Accepts a waiting caller; returns nullopt if no caller waits or none can be accepted. Logs the
  // first time that this process has no free descriptor.
  std::optional<Connection> accept(std::size_t callers);

  // How often a full listener should check whether it can accept callers again.
  static constexpr int kFullMilliseconds = 100;

 private:
  static constexpr std::size_t kMostCallers = 256;  // bounds the descriptors of port scanners

  Listener listener_;
  bool lacks_descriptors_ = false;
  bool has_warned_ = false;
};

}  // namespace syncopate
