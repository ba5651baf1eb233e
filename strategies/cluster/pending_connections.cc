#include "strategies/cluster/pending_connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

// The most pending connections: a bound on the descriptors that port scanners can occupy. Further
// connections wait in the socket's backlog.
constexpr std::size_t kMaxSilent = 256;
constexpr int kMostWarnings = 20;
// How often room for new connections is checked while the set of pending connections is full.
constexpr int kFullPollMilliseconds = 100;

}  // namespace

PendingConnections::PendingConnections(Listener listener, std::uint32_t max_message_bytes,
                                       std::chrono::milliseconds silence_timeout)
    : listener_(std::move(listener)),
      max_message_bytes_(max_message_bytes),
      silence_timeout_(silence_timeout) {}

bool PendingConnections::is_full() const noexcept {
  return lacks_descriptors_ || silent_.size() >= kMaxSilent;
}

void PendingConnections::add_to(std::vector<pollfd>& sockets) const {
  // While no connection can be accepted, -1 replaces the listening socket, and poll() ignores it.
  // Otherwise waiting connections would make poll() return at once.
  sockets.push_back({is_full() ? -1 : listener_.descriptor(), POLLIN, 0});
  for (const Silent& silent : silent_) {
    sockets.push_back({silent.connection.descriptor(), POLLIN, 0});
  }
}

int PendingConnections::poll_milliseconds(const Deadline& deadline) const {
  const int left = deadline.remaining_milliseconds();
  return is_full() ? std::min(left, kFullPollMilliseconds) : left;
}

std::vector<PendingConnections::Arrival> PendingConnections::receive() {
  accept();
  std::vector<Arrival> arrivals;
  for (Silent& silent : std::exchange(silent_, {})) {
    try {
      if (std::optional<Frame> frame = silent.connection.try_receive()) {
        arrivals.push_back({std::move(silent.connection), *std::move(frame)});
      } else {
        silent_.push_back(std::move(silent));
      }
    } catch (const PeerError& error) {
      warn_rejected(silent.connection.peer(), error.what());
    }
  }
  close_silent();
  return arrivals;
}

void PendingConnections::accept() {
  lacks_descriptors_ = false;
  try {
    while (!is_full()) {
      std::optional<Connection> connection =
          listener_.accept(Deadline::after(std::chrono::milliseconds(0)));
      if (!connection) return;
      connection->limit_payload(max_message_bytes_);
      silent_.push_back({*std::move(connection), Deadline::after(silence_timeout_)});
    }
  } catch (const FileError& error) {
    lacks_descriptors_ = true;
    if (!std::exchange(has_warned_, true)) {
      log(LogLevel::kWarning,
          fmt::format("{}; until then new connections have to wait", error.what()));
    }
  }
}

void PendingConnections::close_silent() {
  if (!is_full()) return;
  const auto closed =
      std::erase_if(silent_, [](const Silent& silent) { return silent.deadline.passed(); });
  if (closed == 0) return;
  warn_rejected(fmt::format("{} connections", closed),
                fmt::format("they sent nothing for {}, and others need their place",
                            in_seconds(silence_timeout_)));
}

void PendingConnections::warn_rejected(const std::string& peer, const std::string& why) {
  if (++rejected_ > kMostWarnings) return;
  const std::string line = why.starts_with(peer) ? why : fmt::format("{}: {}", peer, why);
  log(LogLevel::kWarning, line + " (rejected; still waiting for the tasks of this job)");
}

}  // namespace syncopate
