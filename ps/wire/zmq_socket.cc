#include "ps/wire/zmq_socket.h"

#include <fmt/format.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/net/connection.h"
#include "ps/net/wake_event.h"
#include "ps/wire/link_monitor.h"

namespace syncopate::ps::wire {
namespace {

using std::chrono::milliseconds;

// The time to the next try of a send: ZeroMQ does not always report room in a peer's pipe.
constexpr milliseconds kNextTry(5);
// Limits the log entries about messages that are not of this protocol.
constexpr std::size_t kMostLoggedPeers = 20;

bool receive_frame(const SocketHandle& socket, ZmqFrame& frame) {
  while (zmq_msg_recv(&frame.content(), socket.get(), ZMQ_DONTWAIT) < 0) {
    if (errno == EAGAIN) return false;
    if (errno != EINTR) check_zmq(-1, "zmq_msg_recv");
  }
  return true;
}

bool has_more(ZmqFrame& frame) { return zmq_msg_more(&frame.content()) != 0; }

SocketHandle make_socket(Context& context, int type, const SocketLimits& limits) {
  SocketHandle socket = context.make_socket(type);
  check_zmq(zmq_setsockopt(socket.get(), ZMQ_MAXMSGSIZE, &limits.longest_frame,
                           sizeof limits.longest_frame),
            "zmq_setsockopt ZMQ_MAXMSGSIZE");
  return socket;
}

// Returns the address that a received frame came from, such as "10.0.0.7".
std::string sender_of(ZmqFrame& frame) {
  const char* const address = zmq_msg_gets(&frame.content(), "Peer-Address");
  if (address == nullptr) return "an unknown address";
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view text = address;
  return std::string(text.starts_with(kMapped) ? text.substr(kMapped.size()) : text);
}

std::int64_t total_bytes(const std::vector<ZmqFrame>& frames) {
  std::int64_t bytes = 0;
  for (const ZmqFrame& frame : frames) bytes += static_cast<std::int64_t>(frame.bytes().size());
  return bytes;
}

// Sends one frame. Returns 0, or the value of errno.
int send_frame(void* socket, ZmqFrame& frame, bool more) {
  for (;;) {
    if (zmq_msg_send(&frame.content(), socket, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0) {
      return 0;
    }
    if (errno != EINTR) return errno;
  }
}

// Sends messages into a ZeroMQ socket, and queues those that ZeroMQ does not take yet, per peer.
// Used by the socket's thread only; the socket must outlive the queue.
class SendQueue {
 public:
  // `is_router`: every message on the socket begins with the routing id of its peer.
  SendQueue(const SocketHandle& socket, bool is_router) : socket_(socket), is_router_(is_router) {}

  // Holds the queue or releases it. While the queue is held, all messages wait in it.
  void hold(bool held) noexcept { is_held_ = held; }

  // Sends or queues the message, in order per peer. Returns false, and drops it, when the peer is
  // not connected.
  bool send(Envelope message);
  // Tries to send the messages in the queue to their peers.
  void flush();
  void clear();

  bool empty() const noexcept { return waiting_.empty(); }
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  enum class Outcome : std::uint8_t { kSent, kNotNow, kNoPeer };
  using Messages = std::deque<std::vector<ZmqFrame>>;

  Outcome send_now(const std::string& peer, std::vector<ZmqFrame>& frames);
  // Sends a peer's queued messages in order until one cannot be sent. Returns the last outcome.
  Outcome drain(const std::string& peer, Messages& messages);
  void append(const std::string& peer, std::vector<ZmqFrame> frames);
  void drop(std::map<std::string, Messages>::iterator entry);

  const SocketHandle& socket_;
  const bool is_router_;
  bool is_held_ = false;
  std::map<std::string, Messages> waiting_;  // messages by peer; no entry is empty
  std::int64_t bytes_ = 0;
};

bool SendQueue::send(Envelope message) {
  check(!message.frames.empty(), "a message has a header frame");
  const std::string peer = is_router_ ? std::move(message.peer) : "";
  const auto before = waiting_.find(peer);
  if (before == waiting_.end()) {
    const Outcome outcome = send_now(peer, message.frames);
    if (outcome == Outcome::kNotNow) append(peer, std::move(message.frames));
    return outcome != Outcome::kNoPeer;
  }
  append(peer, std::move(message.frames));
  const Outcome outcome = drain(peer, before->second);
  if (outcome != Outcome::kNotNow) drop(before);
  return outcome != Outcome::kNoPeer;
}

void SendQueue::flush() {
  // Sending makes ZeroMQ process its commands, which can free the pipe of a peer that was tried
  // before: passes over the peers repeat until no message is sent.
  for (bool moved = true; moved && !waiting_.empty();) {
    moved = false;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const auto current = next++;
      const std::int64_t before = bytes_;
      if (drain(current->first, current->second) != Outcome::kNotNow) {
        drop(current);
        moved = true;
      }
      moved |= bytes_ != before;
    }
  }
}

void SendQueue::clear() {
  const auto dropped = std::exchange(waiting_, {});
  bytes_ = 0;
}

SendQueue::Outcome SendQueue::drain(const std::string& peer, Messages& messages) {
  while (!messages.empty()) {
    const std::int64_t size =
        total_bytes(messages.front());  // taken before sending: sent frames are empty
    const Outcome outcome = send_now(peer, messages.front());
    if (outcome != Outcome::kSent) return outcome;
    bytes_ -= size;
    messages.pop_front();
  }
  return Outcome::kSent;
}

SendQueue::Outcome SendQueue::send_now(const std::string& peer, std::vector<ZmqFrame>& frames) {
  if (is_held_) return Outcome::kNotNow;
  const auto outcome_of = [](int reason) {
    if (reason == EAGAIN) return Outcome::kNotNow;
    if (reason == EHOSTUNREACH) return Outcome::kNoPeer;
    errno = reason;
    check_zmq(-1, "zmq_msg_send");
    return Outcome::kNoPeer;
  };
  if (is_router_) {
    ZmqFrame address = ZmqFrame::copy_of(std::as_bytes(std::span(peer)));
    if (const int reason = send_frame(socket_.get(), address, true)) return outcome_of(reason);
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int reason = send_frame(socket_.get(), frames[i], i + 1 < frames.size());
    if (reason == 0) continue;
    if (i == 0 && !is_router_) return outcome_of(reason);
    // The connection broke in the middle of the message. The message's remaining frames must still
    // be passed to ZeroMQ, which drops them: it would else append the next message to this one.
    if (reason != EAGAIN) return outcome_of(reason);
  }
  return Outcome::kSent;
}

void SendQueue::append(const std::string& peer, std::vector<ZmqFrame> frames) {
  bytes_ += total_bytes(frames);
  waiting_[peer].push_back(std::move(frames));
}

void SendQueue::drop(std::map<std::string, Messages>::iterator entry) {
  for (const std::vector<ZmqFrame>& frames : entry->second) bytes_ -= total_bytes(frames);
  waiting_.erase(entry);
}

}  // namespace

Envelope envelope(std::string peer, const MessageT& message) {
  Envelope made{std::move(peer), {}};
  made.frames.push_back(ZmqFrame::copy_of(encode(message)));
  return made;
}

struct Socket::State {
  State(Context& context, int type, const SocketLimits& with_limits)
      : limits(with_limits),
        is_router(type == ZMQ_ROUTER),
        socket(make_socket(context, type, limits)),
        monitor(context, socket),
        queue(socket, is_router),
        callers(limits.callers) {
    // A DEALER starts without a connection, so its queue keeps messages until there is one. ZeroMQ
    // itself would for a moment accept messages for a connection that has ended, and lose them.
    queue.hold(!is_router);
  }

  // Handles what the monitor reports about connections. The monitor knows of a change before the
  // socket does, so the socket is made to process its commands.
  void process_link_changes();
  void on_link_change(const LinkMonitor::Change& change);
  // Returns whether the socket has a message. Makes ZeroMQ process everything that has happened.
  bool is_readable() const;
  // Sets the timer for lost edges of ZMQ_FD. Called by each function that may consume an edge.
  void set_timer();
  // Receives a whole message; frames of a message beyond `most_frames` + 1 are dropped.
  std::optional<Envelope> next_message();
  // Decodes the header of a received message. Returns nothing, and sets `problem` to the reason,
  // for a message that is dropped.
  std::optional<MessageT> header_of(const Envelope& message, std::string& problem) const;
  void log_dropped(Envelope& message, const std::string& problem);

  const SocketLimits limits;
  const bool is_router;
  SocketHandle socket;
  LinkMonitor monitor;
  SendQueue queue;
  WakeTimer timer;
  std::optional<Reconnector> reconnector;  // only for a DEALER
  UnknownCallers callers;                  // only of a ROUTER
  std::uint16_t port = 0;                  // only for a ROUTER
  bool is_connected = false;
  std::deque<LinkEvent> events;  // events that link_event() has still to return
  std::int64_t foreign_messages = 0;
  std::set<std::string> logged_peers;
};

void Socket::State::on_link_change(const LinkMonitor::Change& change) {
  if (is_router) {
    if (change.kind == LinkChange::kOpened) callers.on_opened(change.descriptor);
    if (change.kind == LinkChange::kClosed) callers.on_closed(change.descriptor);
    return;
  }
  reconnector->on_link_change(change.kind);
  if (change.kind == LinkChange::kHandshake) {
    is_connected = true;
    queue.hold(false);
    events.push_back(LinkEvent::kConnected);
  } else if (change.kind == LinkChange::kClosed && is_connected) {
    is_connected = false;
    queue.hold(true);
    queue.clear();
    events.push_back(LinkEvent::kDisconnected);
  }
}

void Socket::State::process_link_changes() {
  while (const std::optional<LinkMonitor::Change> change = monitor.next()) {
    on_link_change(*change);
    (void)is_readable();
  }
  if (reconnector) reconnector->reconnect_if_due();
  callers.close_overdue();
}

bool Socket::State::is_readable() const {
  int events_set = 0;
  std::size_t length = sizeof events_set;
  check_zmq(zmq_getsockopt(socket.get(), ZMQ_EVENTS, &events_set, &length),
            "zmq_getsockopt ZMQ_EVENTS");
  return (events_set & ZMQ_POLLIN) != 0;
}

void Socket::State::set_timer() {
  const auto due = reconnector ? reconnector->due() : callers.due();
  if (is_readable() || !events.empty()) {
    timer.set(milliseconds(0));
  } else if (!queue.empty() && (is_router || is_connected)) {
    timer.set(kNextTry);
  } else if (due) {
    timer.set(*due);
  } else {
    timer.clear();
  }
}

std::optional<Envelope> Socket::State::next_message() {
  Envelope message;
  ZmqFrame frame;
  if (!receive_frame(socket, frame)) return std::nullopt;
  bool more = true;
  if (is_router) {
    const auto id = frame.bytes();
    message.peer.assign(reinterpret_cast<const char*>(id.data()), id.size());
    more = has_more(frame);
    if (more) receive_frame(socket, frame);
  }
  while (more) {
    more = has_more(frame);
    // Keeps one frame beyond the limit: header_of() recognises a message of too many frames by it.
    if (std::cmp_less_equal(message.frames.size(), limits.most_frames)) {
      message.frames.push_back(std::move(frame));
      frame = ZmqFrame();
    }
    if (more) receive_frame(socket, frame);
  }
  return message;
}

std::optional<MessageT> Socket::State::header_of(const Envelope& message,
                                                 std::string& problem) const {
  if (message.frames.empty()) {
    problem = "a message without a frame";
    return std::nullopt;
  }
  if (std::cmp_greater(message.frames.size(), limits.most_frames)) {
    problem = fmt::format("a message of more than {} frames", limits.most_frames);
    return std::nullopt;
  }
  return decode(message.frames.front().bytes(), &problem);
}

void Socket::State::log_dropped(Envelope& message, const std::string& problem) {
  if (logged_peers.size() >= kMostLoggedPeers || !logged_peers.insert(message.peer).second) return;
  const std::string from = reconnector              ? std::string(reconnector->target())
                           : message.frames.empty() ? "a caller"
                                                    : sender_of(message.frames.front());
  log(LogLevel::kWarning,
      fmt::format("dropped a message from {}: {}; does another program use this port?", from,
                  problem));
}

Socket::Socket(std::unique_ptr<State> state) : state_(std::move(state)) {}
Socket::~Socket() = default;

std::unique_ptr<Socket> Socket::listen(Context& context, const Endpoint& at,
                                       const SocketLimits& limits) {
  return listen(context, Listener(at).release(), limits);
}

std::unique_ptr<Socket> Socket::listen(Context& context, FileDescriptor listening,
                                       const SocketLimits& limits) {
  Listener listener(std::move(listening));  // throws unless the descriptor listens
  auto state = std::make_unique<State>(context, ZMQ_ROUTER, limits);
  state->port = listener.port();
  set_option(state->socket, ZMQ_ROUTER_MANDATORY, 1);
  set_option(state->socket, ZMQ_USE_FD, listener.descriptor());
  // ZeroMQ requires an address for zmq_bind() but does not use it: the socket is bound already.
  check_zmq(zmq_bind(state->socket.get(), "tcp://127.0.0.1:*"), "zmq_bind");
  (void)listener.release().release();  // ZeroMQ closes the descriptor
  return std::unique_ptr<Socket>(new Socket(std::move(state)));
}

std::unique_ptr<Socket> Socket::connect(Context& context, const Endpoint& to,
                                        const SocketLimits& limits) {
  auto state = std::make_unique<State>(context, ZMQ_DEALER, limits);
  // Without a connection ZeroMQ must not queue messages itself: that queue could not be cleared.
  set_option(state->socket, ZMQ_IMMEDIATE, 1);
  state->reconnector.emplace(state->socket, to);
  return std::unique_ptr<Socket>(new Socket(std::move(state)));
}

std::uint16_t Socket::port() const { return state_->port; }

bool Socket::send(Envelope message) {
  State& state = *state_;
  state.process_link_changes();
  if (std::ranges::find(state.events, LinkEvent::kDisconnected) != state.events.end()) {
    state.set_timer();
    return false;
  }
  const bool has_peer = state.queue.send(std::move(message));
  state.set_timer();
  return has_peer;
}

void Socket::flush() {
  state_->process_link_changes();
  if (!state_->queue.empty()) {
    (void)state_->is_readable();
    state_->queue.flush();
  }
  state_->set_timer();
}

std::int64_t Socket::queued_bytes() const noexcept { return state_->queue.bytes(); }

std::optional<Received> Socket::receive() {
  State& state = *state_;
  while (std::optional<Envelope> message = state.next_message()) {
    std::string problem;
    if (std::optional<MessageT> header = state.header_of(*message, problem)) {
      return Received{std::move(*message), std::move(*header)};
    }
    ++state.foreign_messages;
    state.log_dropped(*message, problem);
  }
  state.set_timer();
  return std::nullopt;
}

void Socket::log_dropped(Envelope& message, const std::string& problem) {
  state_->log_dropped(message, problem);
}

void Socket::keep(Envelope& greeting) {
  if (greeting.frames.empty()) return;
  // A frame from a caller of ZeroMQ before version 3 has no descriptor: it is -1.
  state_->callers.accept(zmq_msg_get(&greeting.frames.front().content(), ZMQ_SRCFD));
}

std::int64_t Socket::callers_without_greeting() const noexcept { return state_->callers.ended(); }

std::optional<LinkEvent> Socket::link_event() {
  State& state = *state_;
  state.process_link_changes();
  std::optional<LinkEvent> event;
  if (!state.events.empty()) {
    event = state.events.front();
    state.events.pop_front();
  }
  state.set_timer();
  return event;
}

std::int64_t Socket::foreign_messages() const noexcept { return state_->foreign_messages; }

std::vector<int> Socket::descriptors() const {
  int descriptor = -1;
  std::size_t length = sizeof descriptor;
  check_zmq(zmq_getsockopt(state_->socket.get(), ZMQ_FD, &descriptor, &length),
            "zmq_getsockopt ZMQ_FD");
  return {descriptor, state_->monitor.descriptor(), state_->timer.descriptor()};
}

}  // namespace syncopate::ps::wire
