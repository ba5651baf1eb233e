#include "strategies/cluster/callers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

// What port scanners may cost. Those who wait behind them are in the socket's queue.
constexpr std::size_t kMostSilent = 256;
// Until we look again whether there is room.
constexpr int kFullMilliseconds = 100;

}  // namespace

Callers::Callers(Listener listener, std::uint32_t longest_message, milliseconds patience)
    : listener_(std::move(listener)), longest_message_(longest_message), patience_(patience) {}

bool Callers::is_full() const noexcept {
  return lacks_descriptors_ || silent_.size() >= kMostSilent;
}

void Callers::add_to(std::vector<pollfd>& sockets) const {
  // poll() passes over negative descriptors: the callers that we cannot take would keep it awake.
  sockets.push_back({is_full() ? -1 : listener_.descriptor(), POLLIN, 0});
  for (const Silent& caller : silent_) {
    sockets.push_back({caller.connection.descriptor(), POLLIN, 0});
  }
}

int Callers::poll_milliseconds(const Deadline& deadline) const {
  const int left = deadline.remaining_milliseconds();
  return is_full() ? std::min(left, kFullMilliseconds) : left;
}

std::vector<Callers::Heard> Callers::hear() {
  accept();
  std::vector<Heard> heard;
  for (Silent& caller : std::exchange(silent_, {})) {
    try {
      if (std::optional<Frame> frame = caller.connection.try_receive()) {
        heard.push_back({std::move(caller.connection), *std::move(frame)});
      } else {
        silent_.push_back(std::move(caller));
      }
    } catch (const PeerError& error) {
      warn_turned_away(caller.connection.peer(), error.what());
    }
  }
  make_room();
  return heard;
}

void Callers::accept() {
  lacks_descriptors_ = false;
  try {
    while (!is_full()) {
      std::optional<Connection> caller = listener_.accept(Deadline::after(milliseconds(0)));
      if (!caller) return;
      caller->limit_payload(longest_message_);
      silent_.push_back({*std::move(caller), Deadline::after(patience_)});
    }
  } catch (const FileError& error) {
    lacks_descriptors_ = true;
    if (!std::exchange(has_said_so_, true)) {
      log(LogLevel::kWarning, std::string(error.what()) + "; until then callers have to wait");
    }
  }
}

void Callers::make_room() {
  if (!is_full()) return;
  const auto gone =
      std::erase_if(silent_, [](const Silent& caller) { return caller.patience.passed(); });
  if (gone == 0) return;
  warn_turned_away(
      std::to_string(gone) + " callers",
      "they said nothing for " + in_seconds(patience_) + ", and others need their place");
}

void warn_turned_away(const std::string& peer, const std::string& why) {
  const std::string line = why.starts_with(peer) ? why : peer + ": " + why;
  log(LogLevel::kWarning, line + " (turned away; still waiting for the tasks of this job)");
}

}  // namespace syncopate
