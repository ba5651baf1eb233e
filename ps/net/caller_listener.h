// Accepts callers that may be any program, for PendingConnections and DescriptorServer.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "ps/net/connection.h"

namespace syncopate {

// A listening socket that serves a bounded number of callers at a time. Further callers, and all
// new ones while this process has no free file descriptor, wait in the socket's backlog. One thread
// only. `callers`: the number of callers that are being served.
class CallerListener {
 public:
  explicit CallerListener(Listener listener) : listener_(std::move(listener)) {}

  std::uint16_t port() const { return listener_.port(); }
  // Returns what poll(2) has to watch: -1, which it ignores, while no caller can be accepted.
  // Waiting callers would else make poll() return at once.
  int descriptor(std::size_t callers) const noexcept {
    return is_full(callers) ? -1 : listener_.descriptor();
  }
  bool is_full(std::size_t callers) const noexcept {
    return lacks_descriptors_ || callers >= kMostCallers;
  }
  // Returns a caller if one waits and can be accepted. Logs the first lack of descriptors.
  std::optional<Connection> accept(std::size_t callers);

  // How often a listener without room is to look for room.
  static constexpr int kFullMilliseconds = 100;

 private:
  static constexpr std::size_t kMostCallers = 256;  // bounds the descriptors of port scanners

  Listener listener_;
  bool lacks_descriptors_ = false;
  bool has_warned_ = false;
};

}  // namespace syncopate
