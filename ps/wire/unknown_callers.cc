#include "ps/wire/unknown_callers.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/log.h"
#include "ps/net/socket.h"

namespace syncopate::ps::wire {
namespace {

// The time between two looks. A caller that sends endlessly takes memory in proportion to it.
constexpr std::chrono::milliseconds kLookInterval(10);

// Returns the bytes that have arrived on a TCP connection; 0 if the system does not tell. Source:
// linux/tcp.h, tcp_info::tcpi_bytes_received, the 17th 64-bit word; netinet/tcp.h ends before it.
std::uint64_t received_bytes(int descriptor) {
  std::array<std::uint64_t, 17> info{};
  socklen_t length = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info.data(), &length) != 0) return 0;
  return info.back();
}

}  // namespace

void UnknownCallers::on_opened(int descriptor) {
  closed_.erase(descriptor);
  // With several I/O threads, ZeroMQ may deliver the greeting before it reports the connection.
  if (known_.contains(descriptor)) return;
  unknown_.insert_or_assign(descriptor, Deadline::after(limits_.timeout));
  if (unknown_.size() == 1 || unknown_.size() > limits_.most) {
    next_look_ = Deadline::after(std::chrono::nanoseconds(0));
  }
}

void UnknownCallers::on_closed(int descriptor) {
  known_.erase(descriptor);
  closed_.insert(descriptor);
  ended_ += static_cast<std::int64_t>(unknown_.erase(descriptor));
}

void UnknownCallers::accept(int descriptor) {
  if (descriptor < 0 || closed_.contains(descriptor)) return;
  unknown_.erase(descriptor);
  known_.insert(descriptor);
}

UnknownCallers::Callers::iterator UnknownCallers::close(Callers::iterator caller,
                                                        const char* reason) {
  ++ended_;
  if (!std::exchange(has_logged_, true)) {
    log(LogLevel::kWarning,
        fmt::format("closed a connection from {} without a greeting of this job: {}; further ones "
                    "are only counted",
                    remote_address(caller->first), reason));
  }
  shutdown(caller->first, SHUT_RDWR);
  return unknown_.erase(caller);
}

void UnknownCallers::close_overdue() {
  if (unknown_.empty() || !next_look_.passed()) return;
  next_look_ = Deadline::after(kLookInterval);
  for (auto caller = unknown_.begin(); caller != unknown_.end();) {
    if (caller->second.passed()) {
      caller = close(caller, "it took too long");
    } else if (received_bytes(caller->first) > limits_.most_bytes) {
      caller = close(caller, "it sent too much");
    } else {
      ++caller;
    }
  }
  while (unknown_.size() > limits_.most) {
    const auto oldest = std::ranges::min_element(
        unknown_, {}, [](const auto& caller) { return caller.second.remaining(); });
    close(oldest, "there are too many");
  }
}

std::optional<std::chrono::nanoseconds> UnknownCallers::due() const {
  if (unknown_.empty()) return std::nullopt;
  return next_look_.remaining();
}

}  // namespace syncopate::ps::wire
