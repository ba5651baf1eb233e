#include "ps/wire/heartbeat_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "models/base/log.h"
#include "ps/net/connection.h"

namespace syncopate::ps::wire {
namespace {

using Clock = Deadline::Clock;
using std::chrono::nanoseconds;

// The longest sleep of the heartbeat thread, so that every sleep has an announced end.
constexpr std::chrono::seconds kLongestSleep(1);
// How many messages the heartbeat thread reads at a time: the other thread waits for the mutex.
constexpr int kMostReads = 256;

std::vector<int> with_wake(std::vector<int> descriptors, const WakeEvent& wake) {
  descriptors.push_back(wake.descriptor());
  return descriptors;
}

// Returns a silence of the owner. What the kernel tells about this process is not certain: the
// other threads of a process may run while one of them hangs.
PeerSilence silence_of_owner(nanoseconds timeout, const ObserverClock& observer) {
  auto look = [probe = ProcessProbe(process_name(getpid()))]() mutable {
    return probe.look() == ProcessState::kStarved ? ProcessState::kUnobserved
                                                  : ProcessState::kUnknown;
  };
  return {timeout, std::move(look), Clock::now(), observer};
}

}  // namespace

HeartbeatSocket::HeartbeatSocket(std::unique_ptr<Socket> socket, nanoseconds interval,
                                 const std::atomic<std::int64_t>& step, nanoseconds owner_timeout)
    : own_step_(step),
      socket_(std::move(socket)),
      descriptors_(with_wake(socket_->descriptors(), wake_)),
      link_descriptor_(socket_->link_descriptor()),
      interval_(interval),
      next_heartbeat_(Clock::now() + interval),
      observer_(Clock::now()),
      owner_(silence_of_owner(owner_timeout, observer_)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  pthread_setname_np(thread_.native_handle(), "ps-heartbeats");
}

HeartbeatSocket::~HeartbeatSocket() {
  thread_.request_stop();
  wakes_thread_.notify();
  thread_.join();
}

std::unique_lock<std::mutex> HeartbeatSocket::lock_for_owner() const {
  std::unique_lock lock(mutex_);
  has_owner_called_ = true;
  return lock;
}

bool HeartbeatSocket::send(Envelope message) {
  const auto lock = lock_for_owner();
  return socket_->send(std::move(message));
}

void HeartbeatSocket::flush() {
  const auto lock = lock_for_owner();
  socket_->flush();
}

std::optional<Received> HeartbeatSocket::receive() {
  const auto lock = lock_for_owner();
  if (failure_) std::rethrow_exception(failure_);
  if (!received_.empty()) {
    std::optional<Received> first(std::move(received_.front()));
    received_.pop_front();
    if (received_.empty()) wake_.clear();
    return first;
  }
  while (std::optional<Received> message = socket_->receive()) {
    if (!take(*message)) return message;
  }
  return std::nullopt;
}

std::optional<LinkEvent> HeartbeatSocket::link_event() {
  const auto lock = lock_for_owner();
  if (!received_.empty()) return std::nullopt;  // these messages came before the event
  const std::optional<LinkEvent> event = socket_->link_event();
  if (event) {
    // Heartbeats must not precede the Hello of a new connection.
    watched_.clear();
    lost_.clear();
  }
  return event;
}

void HeartbeatSocket::log_dropped(Envelope& message, const std::string& problem) {
  const auto lock = lock_for_owner();
  socket_->log_dropped(message, problem);
}

std::int64_t HeartbeatSocket::callers_without_greeting() const {
  const auto lock = lock_for_owner();
  return socket_->callers_without_greeting();
}

std::int64_t HeartbeatSocket::foreign_messages() const {
  const auto lock = lock_for_owner();
  return socket_->foreign_messages();
}

std::string HeartbeatSocket::why_no_answer(const Endpoint& endpoint) const {
  bool lacks_challenge = false;
  {
    const auto lock = lock_for_owner();
    lacks_challenge = socket_->lacks_challenge();
  }
  if (lacks_challenge) {
    return "; it accepted the connection but did not answer the greeting: is it busy, or another "
           "version of syncopate?";
  }
  const std::string reason = why_unreachable(endpoint);
  return fmt::format("{}; is it running, and have all workers and servers been started?",
                     reason.empty() ? "" : ": " + reason);
}

void HeartbeatSocket::watch(const std::string& peer, nanoseconds timeout,
                            const std::string& process) {
  // ZeroMQ's thread of this process may have no CPU to read what the peer has sent: it has read the
  // last message of a process that has ended once it has noticed the end of the connection.
  auto look = [this, peer, peer_probe = ProcessProbe(process),
               own_probe = ProcessProbe(process_name(getpid()))]() mutable {
    const bool is_starved = own_probe.look() == ProcessState::kStarved;
    const ProcessState state = peer_probe.look();
    if (state == ProcessState::kEnded && watched_.at(peer).is_connected) {
      return ProcessState::kEnding;
    }
    const bool is_certain = state == ProcessState::kEnded || state == ProcessState::kStopped;
    return is_starved && !is_certain ? ProcessState::kUnobserved : state;
  };
  const auto lock = lock_for_owner();
  watched_.insert_or_assign(
      peer, Watched{.watch = PeerSilence(timeout, std::move(look), Clock::now(), observer_)});
  lost_.erase(peer);
  wakes_thread_.notify();
}

void HeartbeatSocket::forget(const std::string& peer) {
  const auto lock = lock_for_owner();
  watched_.erase(peer);
  lost_.erase(peer);
}

std::map<std::string, LostPeer> HeartbeatSocket::lost() const {
  const auto lock = lock_for_owner();
  std::map<std::string, LostPeer> lost = lost_;
  // A peer may have announced its end in a message that the owner has not received yet.
  for (const Received& message : received_) lost.erase(message.peer);
  return lost;
}

std::int64_t HeartbeatSocket::step(const std::string& peer) const {
  const auto lock = lock_for_owner();
  const auto found = watched_.find(peer);
  return found == watched_.end() ? 0 : found->second.step;
}

void HeartbeatSocket::set_interval(nanoseconds interval) {
  const auto lock = lock_for_owner();
  interval_ = interval;
  next_heartbeat_ = std::min(next_heartbeat_, Clock::now() + interval);
  wakes_thread_.notify();
}

void HeartbeatSocket::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  try {
    while (!stop.stop_requested()) run_once(lock);
  } catch (...) {
    failure_ = std::current_exception();
    wake_.notify();
  }
}

void HeartbeatSocket::run_once(std::unique_lock<std::mutex>& lock) {
  const bool has_owner = is_owner_alive();
  if (Clock::now() >= next_heartbeat_) {
    next_heartbeat_ = Clock::now() + interval_;
    if (has_owner) send_heartbeats();
  }
  socket_->flush();
  const bool is_all_read = read_waiting();
  if (is_all_read) check_peers();
  const PeerSilence::Time now = Clock::now();
  const nanoseconds longest = is_all_read ? time_to_next_task(now) : nanoseconds(0);
  observer_.update(now, longest);
  sleep(lock, longest);
  observer_.update(Clock::now(), nanoseconds(0));
}

void HeartbeatSocket::sleep(std::unique_lock<std::mutex>& lock, nanoseconds longest) {
  lock.unlock();
  std::array<pollfd, 2> polled{pollfd{wakes_thread_.descriptor(), POLLIN, 0},
                               pollfd{link_descriptor_, POLLIN, 0}};
  const auto whole_seconds = std::chrono::floor<std::chrono::seconds>(longest);
  const timespec timeout{.tv_sec = whole_seconds.count(),
                         .tv_nsec = (longest - whole_seconds).count()};
  ppoll(polled.data(), polled.size(), &timeout, nullptr);
  lock.lock();
  wakes_thread_.clear();
}

bool HeartbeatSocket::is_owner_alive() {
  const PeerSilence::Time now = Clock::now();
  if (std::exchange(has_owner_called_, false)) {
    owner_.on_message(now, observer_);
    is_owner_lost_ = false;
  }
  if (is_owner_lost_) return false;
  const auto lost = owner_.check(now, observer_, /*in_set_up=*/false);
  if (!lost) return true;
  is_owner_lost_ = true;
  log(LogLevel::kWarning,
      fmt::format("the control thread of this task has not run for {}: this task sends no "
                  "heartbeats until it does",
                  in_seconds(lost->silence)));
  return false;
}

void HeartbeatSocket::send_heartbeats() {
  for (auto& [peer, watched] : watched_) {
    HeartbeatT heartbeat;
    heartbeat.step = own_step_.load(std::memory_order_relaxed);
    watched.is_connected = socket_->send(envelope(peer, make_message(std::move(heartbeat))));
  }
}

// Reads messages that have arrived. Returns whether none is left.
bool HeartbeatSocket::read_waiting() {
  for (int i = 0; i < kMostReads; ++i) {
    std::optional<Received> message = socket_->receive();
    if (!message) return true;
    if (take(*message)) continue;
    received_.push_back(*std::move(message));
    wake_.notify();
  }
  return false;
}

bool HeartbeatSocket::take(const Received& message) {
  const auto sender = watched_.find(message.peer);
  if (sender == watched_.end()) return false;
  sender->second.watch.on_message(Clock::now(), observer_);
  if (!lost_.empty()) lost_.erase(message.peer);
  if (message.header.body.type != Body::Heartbeat) return false;
  sender->second.step = message.header.body.AsHeartbeat()->step;
  return true;
}

void HeartbeatSocket::check_peers() {
  const bool has_own_step = own_step_.load(std::memory_order_relaxed) > 0;
  for (auto& [peer, watched] : watched_) {
    if (lost_.contains(peer)) continue;
    const bool in_set_up = !has_own_step && watched.step <= 0;
    const auto lost = watched.watch.check(Clock::now(), observer_, in_set_up);
    if (lost) lost_.emplace(peer, *lost);
  }
}

nanoseconds HeartbeatSocket::time_to_next_task(PeerSilence::Time now) const {
  nanoseconds time = std::min<nanoseconds>(kLongestSleep, next_heartbeat_ - now);
  if (const auto due = socket_->due()) time = std::min(time, *due);
  for (const auto& [peer, watched] : watched_) {
    if (!lost_.contains(peer)) time = std::min(time, watched.watch.time_left(now, observer_));
  }
  return std::max(nanoseconds(0), time);
}

}  // namespace syncopate::ps::wire
