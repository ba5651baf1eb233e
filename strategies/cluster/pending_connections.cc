#include "strategies/cluster/pending_connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "strategies/cluster/outgoing_greeting.h"

namespace syncopate {
namespace {

constexpr int kMostWarnings = 20;

// Sends a frame of a few bytes, which every socket takes at once.
void send_small(Connection& connection, const Frame& frame) {
  connection.queue(frame);
  connection.flush();
}

// Lets a task of another version of syncopate tell its user both versions: it reads ours in the
// head of any frame.
void answer_other_version(Connection& connection) {
  try {
    send_small(connection, {kGreetingChallenge, ""});
  } catch (const PeerError&) {
    // The task is gone already.
  }
}

}  // namespace

PendingConnections::PendingConnections(Listener listener, std::string nonce,
                                       std::uint32_t max_message_bytes,
                                       std::chrono::milliseconds silence_timeout,
                                       std::chrono::milliseconds greeting_timeout)
    : listener_(std::move(listener)),
      nonce_(std::move(nonce)),
      max_message_bytes_(max_message_bytes + static_cast<std::uint32_t>(kSealBytes)),
      silence_timeout_(silence_timeout),
      greeting_timeout_(greeting_timeout) {}

void PendingConnections::add_to(std::vector<pollfd>& sockets) const {
  sockets.push_back({listener_.descriptor(silent_.size()), POLLIN, 0});
  for (const Silent& silent : silent_) {
    sockets.push_back({silent.connection.descriptor(), POLLIN, 0});
  }
}

int PendingConnections::poll_milliseconds(const Deadline& deadline) const {
  const int left = deadline.remaining_milliseconds();
  const bool has_greeting = std::ranges::any_of(
      silent_, [](const Silent& silent) { return silent.greeting_by.has_value(); });
  return is_full() || has_greeting ? std::min(left, CallerListener::kFullMilliseconds) : left;
}

std::vector<PendingConnections::Arrival> PendingConnections::receive() {
  accept();
  std::vector<Arrival> arrivals;
  for (Silent& silent : std::exchange(silent_, {})) {
    try {
      if (std::optional<Arrival> arrival = greet(silent)) {
        arrivals.push_back(*std::move(arrival));
      } else {
        silent_.push_back(std::move(silent));
      }
    } catch (const ProtocolVersionError& error) {
      answer_other_version(silent.connection);
      warn_rejected(silent.connection.peer(), error.what());
    } catch (const PeerError& error) {
      warn_rejected(silent.connection.peer(), error.what());
    }
  }
  close_half_greeted();
  close_silent();
  return arrivals;
}

std::optional<PendingConnections::Arrival> PendingConnections::greet(Silent& silent) {
  Connection& connection = silent.connection;
  while (std::optional<Frame> frame = connection.try_receive()) {
    if (!silent.greeting_by) {
      if (frame->type != kGreetingCall) {
        throw PeerError(
            fmt::format("{}: it sent a frame of type {} without a call; is it a task of this job?",
                        connection.peer(), frame->type));
      }
      silent.greeting.emplace(nonce_);
      send_small(connection, {kGreetingChallenge, silent.greeting->challenge()});
      silent.greeting_by = Deadline::after(greeting_timeout_);
      continue;
    }
    const std::size_t seal_bytes = std::min(kSealBytes, frame->payload.size());
    const std::string seal = frame->payload.substr(0, seal_bytes);
    frame->payload.erase(0, seal_bytes);
    const std::optional<std::string> proof = silent.greeting->check(frame->payload, seal);
    if (proof) send_small(connection, {kGreetingProof, *proof});
    return Arrival{std::move(connection), *std::move(frame), proof.has_value()};
  }
  return std::nullopt;
}

void PendingConnections::close_half_greeted() {
  std::erase_if(silent_, [this](const Silent& silent) {
    if (!silent.greeting_by || !silent.greeting_by->passed()) return false;
    warn_rejected(silent.connection.peer(),
                  fmt::format("it did not complete its greeting within {}",
                              in_seconds(silent.greeting_by->timeout())));
    return true;
  });
}

void PendingConnections::accept() {
  while (std::optional<Connection> connection = listener_.accept(silent_.size())) {
    connection->limit_payload(max_message_bytes_);
    silent_.push_back(
        {*std::move(connection), Deadline::after(silence_timeout_), std::nullopt, std::nullopt});
  }
}

void PendingConnections::close_silent() {
  if (!is_full()) return;
  const auto closed =
      std::erase_if(silent_, [](const Silent& silent) { return silent.deadline.passed(); });
  if (closed == 0) return;
  warn_rejected(fmt::format("{} connections", closed),
                fmt::format("they did not complete their greeting within {}, and others need their "
                            "place",
                            in_seconds(silence_timeout_)));
}

void PendingConnections::warn_rejected(const std::string& peer, const std::string& why) {
  if (++rejected_ > kMostWarnings) return;
  const std::string line = why.starts_with(peer) ? why : fmt::format("{}: {}", peer, why);
  log(LogLevel::kWarning, line + " (rejected; still waiting for the tasks of this job)");
}

}  // namespace syncopate
