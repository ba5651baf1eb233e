#include "strategies/cluster/watcher.h"

#include <algorithm>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using Clock = Deadline::Clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// How long we stay for the others when asked to stop: the last message travels in far less, and
// whoever does not take it must not keep this task alive.
constexpr milliseconds kLinger(500);
constexpr milliseconds kLongestWait(1000);
// After we ran again, until we notice that others have ended meanwhile.
constexpr milliseconds kGivenUpMayShowIn(1000);

// The rest of peer_timeout is for telling everybody, and for ending.
nanoseconds longest_silence(nanoseconds peer_timeout) { return peer_timeout * 7 / 10; }
nanoseconds heartbeat_interval(nanoseconds peer_timeout) { return peer_timeout / 10; }

std::string last_step(std::int64_t step) {
  return step < 0 ? "; it was last heard before its first step"
                  : "; it was last heard at step " + std::to_string(step);
}

}  // namespace

Watcher::Watcher(Meeting meeting, const WatcherPorts& ports)
    : index_(meeting.index),
      peer_timeout_(meeting.roster.peer_timeout),
      ports_(ports),
      watch_(static_cast<int>(meeting.connections.size()), longest_silence(peer_timeout_),
             Clock::now()),
      next_heartbeat_(Clock::now()) {
  for (const Member& member : meeting.roster.members) {
    const std::string name = describe(member.index, member.host, member.pid);
    if (member.index == index_) own_name_ = name;
    if (member.index == index_ || (!is_hub() && member.index != 0)) continue;
    Peer peer{.index = member.index,
              .name = name,
              .connection = std::move(meeting.connections[peers_.size()])};
    // Begins the line when the connection breaks.
    peer.connection.set_peer(name + " was lost");
    peers_.push_back(std::move(peer));
  }
}

void Watcher::run(const std::stop_token& stop) {
  std::optional<Deadline> linger;
  for (;;) {
    if (stop.stop_requested()) {
      if (!ended_ || all_closed()) return;
      if (!linger) linger = Deadline::after(kLinger);
      if (linger->passed()) return;
    }
    const std::vector<pollfd> ready = wait(linger);
    take_posted();
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (peers_[i].is_open() && (ready[i].revents & ~POLLOUT) != 0) {
        watch_.heard(static_cast<int>(i), Clock::now());
        listen_to(peers_[i]);
      }
    }
    if (!ended_) {
      if (const std::optional<int> silent = watch_.silent(Clock::now())) {
        Peer& peer = peers_[static_cast<std::size_t>(*silent)];
        lose(peer, peer.connection.peer() + ": it has been silent for " +
                       in_seconds(longest_silence(peer_timeout_)));
      }
    }
    send_heartbeats();
    flush();
    if (all_closed()) ports_.mailbox->set_closed();
  }
}

// In the order of peers_; a closed one is never ready.
std::vector<pollfd> Watcher::wait(const std::optional<Deadline>& linger) {
  std::vector<pollfd> sockets;
  for (const Peer& peer : peers_) {
    const int events = peer.connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
    sockets.push_back({peer.connection.descriptor(), static_cast<short>(events), 0});
  }
  sockets.push_back({ports_.mailbox->wake_descriptor(), POLLIN, 0});

  const Watch::Time now = Clock::now();
  nanoseconds patience = linger ? linger->remaining() : nanoseconds(kLongestWait);
  if (!ended_) {
    patience = std::min(
        {patience, watch_.time_left(now), std::max(nanoseconds(0), next_heartbeat_ - now)});
  }
  const auto rounded = std::chrono::ceil<milliseconds>(patience);
  note_own_absence(watch_.round(now, rounded));
  poll(sockets.data(), sockets.size(), static_cast<int>(rounded.count()));
  note_own_absence(watch_.round(Clock::now(), nanoseconds(0)));
  return sockets;
}

void Watcher::note_own_absence(nanoseconds late) {
  if (late <= nanoseconds(0)) return;
  absence_ = late;
  absent_until_ = Clock::now();
}

// Whoever is lost right after we did not run for so long ended because of us.
bool Watcher::was_given_up() const {
  // Our last heartbeat was some time ago already when we stopped.
  return absence_ >= longest_silence(peer_timeout_) - 2 * heartbeat_interval(peer_timeout_) &&
         Clock::now() - absent_until_ < kGivenUpMayShowIn;
}

void Watcher::listen_to(Peer& peer) {
  try {
    while (peer.is_open()) {
      std::optional<Frame> frame = peer.connection.try_receive();
      if (!frame) return;
      take(peer, *std::move(frame));
    }
  } catch (const PeerError& error) {
    lose(peer, error.what());
  }
}

void Watcher::take(Peer& peer, Frame frame) {
  if (ended_) return;
  if (frame.type == kHeartbeat) {
    peer.step = std::max(peer.step, decode_number(frame));
  } else if (!is_hub()) {
    deliver(std::move(frame));
  } else if (frame.type == kFailing) {
    conclude(peer.name + " failed: " + frame.payload);
    peer.close();
  } else {
    send_to_all(ports_.hub->take(peer.index, std::move(frame)));
  }
}

void Watcher::take_posted() {
  for (Frame& frame : ports_.mailbox->take_posted()) {
    if (ended_) continue;
    if (frame.type == kFailing) {
      ended_ = true;
      if (is_hub()) frame = {kVerdict, own_name_ + " failed: " + frame.payload};
      for (Peer& peer : peers_) peer.connection.queue(frame);
      ports_.mailbox->interrupt();
    } else if (is_hub()) {
      send_to_all(ports_.hub->take(0, std::move(frame)));
    } else {
      peers_[0].connection.queue(frame);
    }
  }
}

void Watcher::send_to_all(const std::vector<Frame>& frames) {
  for (const Frame& frame : frames) {
    for (Peer& peer : peers_) peer.connection.queue(frame);
    deliver(frame);
  }
}

// From rank 0; at rank 0 from itself.
void Watcher::deliver(Frame frame) {
  if (frame.type == kText) {
    ports_.mailbox->deliver_text(std::move(frame.payload));
  } else if (frame.type == kLeft) {
    ended_ = true;
    if (!is_hub()) close_all();
    ports_.mailbox->set_left();
  } else if (frame.type == kVerdict) {
    conclude(frame.payload);
  }
}

void Watcher::send_heartbeats() {
  const Watch::Time now = Clock::now();
  if (ended_ || now < next_heartbeat_) return;
  next_heartbeat_ = now + heartbeat_interval(peer_timeout_);
  const std::int64_t step = ports_.step->load(std::memory_order_relaxed);
  for (Peer& peer : peers_) peer.connection.queue({kHeartbeat, std::to_string(step)});
}

void Watcher::flush() {
  for (Peer& peer : peers_) {
    if (!peer.is_open()) continue;
    try {
      peer.connection.flush();
    } catch (const PeerError&) {
      // Reading finds the same, after the last words that may be there to read.
    }
  }
}

void Watcher::lose(Peer& peer, const std::string& how) {
  if (!ended_ && was_given_up()) {
    conclude(own_name_ + " did not run for " + in_seconds(absence_) +
             " (stopped, or without a CPU), and the others gave it up");
  } else if (!ended_) {
    conclude(how + last_step(peer.step));
  }
  peer.close();
}

void Watcher::conclude(const std::string& verdict) {
  ended_ = true;
  if (is_hub()) {
    for (Peer& peer : peers_) {
      // The lost one too: a task that was stopped reads it when it goes on.
      if (peer.is_open()) peer.connection.queue({kVerdict, verdict});
    }
    flush();
  } else {
    close_all();
  }
  ports_.notice->set(verdict);
  ports_.mailbox->interrupt();
}

void Watcher::close_all() {
  for (Peer& peer : peers_) peer.close();
}

bool Watcher::all_closed() const noexcept { return std::ranges::none_of(peers_, &Peer::is_open); }

}  // namespace syncopate
