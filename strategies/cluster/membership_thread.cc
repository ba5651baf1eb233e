#include "strategies/cluster/membership_thread.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "strategies/cluster/handshake.h"

namespace syncopate {
namespace {

using Clock = Deadline::Clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The longest wait for peers after a stop was requested. The last message arrives much sooner, and
// a peer that does not read it must not keep this task alive.
constexpr milliseconds kLinger(500);
constexpr milliseconds kLongestPoll(1000);
// When the I/O thread runs again after a stop (such as SIGSTOP), it detects within this time that
// the other tasks have closed their connections to it.
constexpr milliseconds kGivenUpWindow(1000);

// A peer may be silent for a part of peer_timeout; the rest is for the verdict and for ending.
nanoseconds longest_silence(nanoseconds peer_timeout) { return peer_timeout * 7 / 10; }
nanoseconds heartbeat_interval(nanoseconds peer_timeout) { return peer_timeout / 10; }

std::string last_step_text(std::int64_t step) {
  return step < 0 ? "; its last message came before its first step"
                  : fmt::format("; its last message came at step {}", step);
}

template <typename Flags, typename IsMissing>
std::vector<int> missing_indices(const Flags& flags, IsMissing is_missing) {
  std::vector<int> missing;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (is_missing(flags[i])) missing.push_back(static_cast<int>(i));
  }
  return missing;
}

}  // namespace

std::vector<Frame> Aggregator::on_message(int from, Frame frame) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(from);
  std::vector<Frame> to_all;
  if (frame.type == kLeaving) {
    leaving_[index] = true;
    if (std::ranges::all_of(leaving_, [](bool leaving) { return leaving; })) {
      to_all.push_back({kLeft, ""});
    }
  } else if (frame.type == kText) {
    texts_[index].push_back(std::move(frame.payload));
    if (std::ranges::any_of(texts_, [](const auto& texts) { return texts.empty(); })) return {};
    for (std::deque<std::string>& texts : texts_) {
      to_all.push_back({kText, std::move(texts.front())});
      texts.pop_front();
    }
  }
  return to_all;
}

std::vector<int> Aggregator::without_text() const {
  const std::lock_guard lock(mutex_);
  return missing_indices(texts_, [](const auto& texts) { return texts.empty(); });
}

std::vector<int> Aggregator::not_leaving() const {
  const std::lock_guard lock(mutex_);
  return missing_indices(leaving_, [](bool leaving) { return !leaving; });
}

std::vector<std::string> MembershipQueue::take_texts(std::size_t count, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, deadline.remaining(),
                    [&] { return texts_.size() >= count || interrupted_; });
  std::vector<std::string> texts;
  while (!texts_.empty() && texts.size() < count) {
    texts.push_back(std::move(texts_.front()));
    texts_.pop_front();
  }
  return texts;
}

bool MembershipQueue::wait_until_left(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, deadline.remaining(), [&] { return left_ || interrupted_; });
  return left_;
}

bool MembershipQueue::wait_until_closed(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, deadline.remaining(), [&] { return closed_; });
}

bool MembershipQueue::is_interrupted() const {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

void MembershipQueue::deliver_text(std::string text) {
  {
    const std::lock_guard lock(mutex_);
    texts_.push_back(std::move(text));
  }
  changed_.notify_all();
}

void MembershipQueue::set(bool MembershipQueue::*flag) {
  {
    const std::lock_guard lock(mutex_);
    this->*flag = true;
  }
  changed_.notify_all();
}

void MembershipQueue::set_left() { set(&MembershipQueue::left_); }

void MembershipQueue::set_closed() { set(&MembershipQueue::closed_); }

void MembershipQueue::interrupt() { set(&MembershipQueue::interrupted_); }

MembershipThread::MembershipThread(ConnectedTask task, const MembershipState& state)
    : index_(task.index),
      peer_timeout_(task.roster.peer_timeout),
      state_(state),
      observer_(Clock::now()),
      next_heartbeat_(Clock::now()) {
  for (const Member& member : task.roster.members) {
    const std::string name = describe(member.index, member.host, member.pid);
    if (member.index == index_) own_name_ = name;
    if (member.index == index_ || (!is_rank_zero() && member.index != 0)) continue;
    Peer peer{.index = member.index,
              .name = name,
              .connection = std::move(task.connections[peers_.size()]),
              .watch = PeerSilence(
                  longest_silence(peer_timeout_),
                  [probe = ProcessProbe(member.process)]() mutable { return probe.look(); },
                  Clock::now(), observer_)};
    // The text of every error of this peer's connection begins with "<peer> was lost".
    peer.connection.set_peer(name + " was lost");
    peers_.push_back(std::move(peer));
  }
}

void MembershipThread::run(const std::stop_token& stop) {
  std::optional<Deadline> linger;
  for (;;) {
    if (stop.stop_requested()) {
      if (!ended_ || all_closed()) return;
      if (!linger) linger = Deadline::after(kLinger);
      if (linger->passed()) return;
    }
    const std::vector<pollfd> ready = wait(linger);
    send_posted();
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (peers_[i].is_open() && (ready[i].revents & ~POLLOUT) != 0) {
        peers_[i].watch.on_message(Clock::now(), observer_);
        receive_from(peers_[i]);
      }
    }
    check_peers();
    send_heartbeats();
    flush();
    if (all_closed()) state_.queue->set_closed();
  }
}

// Waits for socket events and returns them in the order of peers_. The descriptor of a closed peer
// is -1, which poll() ignores.
std::vector<pollfd> MembershipThread::wait(const std::optional<Deadline>& linger) {
  std::vector<pollfd> sockets;
  for (const Peer& peer : peers_) {
    const int events = peer.connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
    sockets.push_back({peer.connection.descriptor(), static_cast<short>(events), 0});
  }
  sockets.push_back({state_.queue->wake_descriptor(), POLLIN, 0});

  const PeerSilence::Time now = Clock::now();
  nanoseconds timeout = linger ? linger->remaining() : nanoseconds(kLongestPoll);
  if (!ended_) {
    timeout = std::min(timeout, std::max(nanoseconds(0), next_heartbeat_ - now));
    for (const Peer& peer : peers_) {
      if (peer.is_open()) timeout = std::min(timeout, peer.watch.time_left(now, observer_));
    }
  }
  const auto rounded = std::chrono::ceil<milliseconds>(timeout);
  record_own_delay(observer_.update(now, rounded));
  poll(sockets.data(), sockets.size(), static_cast<int>(rounded.count()));
  record_own_delay(observer_.update(Clock::now(), nanoseconds(0)));
  return sockets;
}

void MembershipThread::record_own_delay(nanoseconds delay) {
  const PeerSilence::Time now = Clock::now();
  if (delay < own_delay_ && now - delayed_until_ < kGivenUpWindow) return;
  own_delay_ = delay;
  delayed_until_ = now;
}

// Whether the peers declared this task lost: it did not run for as long as they tolerate, and their
// connections close right after that.
bool MembershipThread::was_given_up() const {
  // The peers count this task's silence from its last heartbeat, which precedes the stop of this
  // thread: two heartbeat intervals are allowed for that.
  return own_delay_ >= longest_silence(peer_timeout_) - 2 * heartbeat_interval(peer_timeout_) &&
         Clock::now() - delayed_until_ < kGivenUpWindow;
}

void MembershipThread::receive_from(Peer& peer) {
  try {
    while (peer.is_open()) {
      std::optional<Frame> frame = peer.connection.try_receive();
      if (!frame) return;
      on_message(peer, *std::move(frame));
    }
  } catch (const PeerError& error) {
    on_lost(peer, error.what());
  }
}

void MembershipThread::on_message(Peer& peer, Frame frame) {
  if (ended_) return;
  if (frame.type == kHeartbeat) {
    peer.step = std::max(peer.step, decode_number(frame));
    if (!is_rank_zero()) state_.lowest_step->store(decode_second_number(frame));
  } else if (!is_rank_zero()) {
    deliver(std::move(frame));
  } else if (frame.type == kFailing) {
    set_verdict(fmt::format("{} failed: {}", peer.name, frame.payload));
    peer.close();
  } else {
    send_to_all(state_.aggregator->on_message(peer.index, std::move(frame)));
  }
}

void MembershipThread::send_posted() {
  for (Frame& frame : state_.queue->take_posted()) {
    if (ended_) continue;
    if (frame.type == kFailing) {
      ended_ = true;
      if (is_rank_zero()) {
        frame = {kVerdict, fmt::format("{} failed: {}", own_name_, frame.payload)};
      }
      for (Peer& peer : peers_) peer.connection.queue(frame);
      state_.queue->interrupt();
    } else if (is_rank_zero()) {
      send_to_all(state_.aggregator->on_message(0, std::move(frame)));
    } else {
      peers_[0].connection.queue(frame);
    }
  }
}

void MembershipThread::send_to_all(const std::vector<Frame>& frames) {
  for (const Frame& frame : frames) {
    for (Peer& peer : peers_) peer.connection.queue(frame);
    deliver(frame);
  }
}

// Handles a frame that rank 0 sends to all tasks, including rank 0 itself.
void MembershipThread::deliver(Frame frame) {
  if (frame.type == kText) {
    state_.queue->deliver_text(std::move(frame.payload));
  } else if (frame.type == kLeft) {
    ended_ = true;
    if (!is_rank_zero()) close_all();
    state_.queue->set_left();
  } else if (frame.type == kVerdict) {
    set_verdict(frame.payload);
  }
}

void MembershipThread::check_peers() {
  for (Peer& peer : peers_) {
    if (ended_) return;
    if (!peer.is_open()) continue;
    const bool in_set_up = peer.step < 0 && state_.step->load(std::memory_order_relaxed) < 0;
    const auto lost = peer.watch.check(Clock::now(), observer_, in_set_up);
    if (lost) on_lost(peer, fmt::format("{}: it {}", peer.connection.peer(), describe(*lost)));
  }
}

void MembershipThread::send_heartbeats() {
  const PeerSilence::Time now = Clock::now();
  if (ended_ || now < next_heartbeat_) return;
  next_heartbeat_ = now + heartbeat_interval(peer_timeout_);
  const std::int64_t step = state_.step->load(std::memory_order_relaxed);
  std::string text = std::to_string(step);
  if (is_rank_zero()) {
    std::int64_t lowest = step;
    for (const Peer& peer : peers_) lowest = std::min(lowest, peer.step);
    state_.lowest_step->store(lowest);
    text += fmt::format(" {}", lowest);
  }
  for (Peer& peer : peers_) peer.connection.queue({kHeartbeat, text});
}

void MembershipThread::flush() {
  for (Peer& peer : peers_) {
    if (!peer.is_open()) continue;
    try {
      peer.connection.flush();
    } catch (const PeerError&) {
      // A failed send is ignored: the next read of the connection fails too, after the peer's last
      // messages have been read.
    }
  }
}

void MembershipThread::on_lost(Peer& peer, const std::string& how) {
  if (!ended_ && was_given_up()) {
    set_verdict(
        fmt::format("{} did not run for {} (stopped, or without a CPU), and the others gave it up",
                    own_name_, in_seconds(own_delay_)));
  } else if (!ended_) {
    set_verdict(how + last_step_text(peer.step));
  }
  peer.close();
}

void MembershipThread::set_verdict(const std::string& verdict) {
  ended_ = true;
  if (is_rank_zero()) {
    for (Peer& peer : peers_) {
      // The lost task is sent the verdict too: if it was only stopped, it reads it later.
      if (peer.is_open()) peer.connection.queue({kVerdict, verdict});
    }
    flush();
  } else {
    close_all();
  }
  state_.notice->set(verdict);
  state_.queue->interrupt();
}

void MembershipThread::close_all() {
  for (Peer& peer : peers_) peer.close();
}

bool MembershipThread::all_closed() const noexcept {
  return std::ranges::none_of(peers_, &Peer::is_open);
}

}  // namespace syncopate
