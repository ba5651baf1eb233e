#include "ps/wire/zmq_socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <zmq_addon.hpp>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/net/connection.h"
#include "ps/net/wake_event.h"
#include "ps/wire/greeting_messages.h"
#include "ps/wire/link_monitor.h"
#include "ps/wire/send_queue.h"

namespace syncopate::ps::wire {
namespace {

using std::chrono::milliseconds;

// The time to the next try of a send: ZeroMQ does not always report room in a peer's pipe.
constexpr milliseconds kNextTry(5);
// Limits the log entries about messages that are not of this protocol.
constexpr std::size_t kMostLoggedPeers = 20;

// Returns the descriptor of the connection that a message came over; -1 if its caller uses ZeroMQ
// before version 3.
int connection_of(Envelope& message) {
  try {
    return message.frames.front().get(ZMQ_SRCFD);
  } catch (const zmq::error_t&) {
    return -1;
  }
}

// Returns the address that a received frame came from, such as "10.0.0.7".
std::string sender_of(zmq::message_t& frame) {
  try {
    constexpr std::string_view kMapped = "::ffff:";
    const std::string_view address = frame.gets("Peer-Address");
    return std::string(address.starts_with(kMapped) ? address.substr(kMapped.size()) : address);
  } catch (const zmq::error_t&) {
    return "an unknown address";
  }
}

}  // namespace

struct Socket::State {
  State(Context& context, zmq::socket_type type, const SocketLimits& with_limits)
      : limits(with_limits),
        is_router(type == zmq::socket_type::router),
        socket(context.make_socket(type)),
        monitor(context, socket),
        queue(socket, is_router),
        callers(limits.callers) {
    // A DEALER starts without a connection, so its queue keeps messages until there is one. ZeroMQ
    // itself would for a moment accept messages for a connection that has ended, and lose them.
    queue.hold(!is_router);
    set_option(socket, zmq::sockopt::maxmsgsize, limits.longest_frame);
    if (is_router && limits.nonce) answers.emplace(*limits.nonce);
  }

  // Handles what the monitor reports about connections. The monitor knows of a change before the
  // socket does, so the socket is made to process its commands.
  void process_link_changes();
  void note_link_changes();
  void on_link_change(const LinkMonitor::Change& change);
  // Returns whether the socket has a message. Makes ZeroMQ process everything that has happened.
  bool is_readable() const;
  // Sets the timer for lost edges of ZMQ_FD. Called by each function that may consume an edge.
  void set_timer();
  // Receives a whole message.
  std::optional<Envelope> next_message();
  // Decodes the header of a received message. Returns nothing, and sets `problem` to the reason,
  // for a message that is dropped.
  std::optional<MessageT> header_of(const Envelope& message, std::string& problem) const;
  void log_dropped(Envelope& message, const std::string& problem);
  // Returns the next message for the owner. Skips greetings and invalid messages.
  std::optional<Received> next_received();
  // Takes the challenge of a new connection if it has come, for an owner that only flushes.
  void look_for_challenge();
  // Keeps the connection that the message came over: it is a greeting of this job.
  void keep_caller(Received& message);
  // Sends a message of a DEALER, with a seal if it is a greeting.
  bool send_over_link(Envelope message);
  // Handles what a message has to do with the greeting of its connection. Returns whether the
  // message is not for the owner.
  bool take_greeting(Received& message);
  // Returns the time until process_link_changes() is due, if no connection changes before.
  std::optional<std::chrono::nanoseconds> due() const {
    return reconnector ? reconnector->due() : callers.due();
  }

  const SocketLimits limits;
  const bool is_router;
  zmq::socket_t socket;
  LinkMonitor monitor;
  SendQueue queue;
  WakeTimer timer;
  std::optional<Reconnector> reconnector;  // only for a DEALER
  UnknownCallers callers;                  // only of a ROUTER
  std::uint16_t port = 0;                  // only for a ROUTER
  std::optional<GreetingAnswers> answers;  // only for a ROUTER with a nonce
  std::optional<GreetingCalls> calls;      // only for a DEALER with a nonce
  std::deque<Received> received_early;     // read by look_for_challenge()
  bool is_connected = false;
  std::deque<LinkEvent> events;  // events that link_event() has still to return
  std::int64_t foreign_messages = 0;
  std::set<std::string> logged_peers;
};

void Socket::State::on_link_change(const LinkMonitor::Change& change) {
  if (is_router) {
    if (change.kind == LinkChange::kClosed) callers.on_closed(change.descriptor);
    if (change.kind == LinkChange::kOpened) {
      callers.on_opened(change.descriptor);
      if (answers) answers->on_opened(change.descriptor);
    }
    return;
  }
  reconnector->on_link_change(change.kind);
  if (change.kind == LinkChange::kHandshake) {
    is_connected = true;
    queue.hold(false);
    if (calls) {
      queue.send(calls->begin());
    } else {
      events.push_back(LinkEvent::kConnected);
    }
  } else if (change.kind == LinkChange::kClosed && is_connected) {
    is_connected = false;
    queue.hold(true);
    queue.clear();
    // Without the challenge the owner does not know that there was a connection.
    if (!calls || calls->end()) events.push_back(LinkEvent::kDisconnected);
  }
}

bool Socket::State::send_over_link(Envelope message) {
  if (!calls) return queue.send(std::move(message));
  std::optional<Envelope> sealed = calls->seal(std::move(message));
  return !sealed || queue.send(std::move(*sealed));
}

bool Socket::State::take_greeting(Received& message) {
  if (answers) {
    if (!message.header.body.AsGreetingCall() && !is_greeting(message.header)) return false;
    note_link_changes();
    const int connection = connection_of(message);
    GreetingStep step = answers->take(message, connection);
    if (step.is_for_owner && step.answer) callers.accept(connection);
    if (step.answer) queue.send(std::move(*step.answer));
    return !step.is_for_owner;
  }
  const bool was_waiting = calls->waits_for_challenge();
  const GreetingStep step = calls->take(message);
  if (was_waiting && calls->is_challenged()) {
    events.push_back(LinkEvent::kConnected);
    for (Envelope& kept : calls->take_kept()) queue.send(std::move(kept));
  }
  return !step.is_for_owner;
}

void Socket::State::note_link_changes() {
  while (const std::optional<LinkMonitor::Change> change = monitor.next()) {
    on_link_change(*change);
    (void)is_readable();
  }
}

void Socket::State::process_link_changes() {
  note_link_changes();
  if (reconnector) reconnector->reconnect_if_due();
  // A message that waits to be received may be the greeting of an overdue caller.
  if (callers.due() == std::chrono::nanoseconds(0) && !is_readable()) callers.close_overdue();
}

bool Socket::State::is_readable() const {
  return (get_option(socket, zmq::sockopt::events) & ZMQ_POLLIN) != 0;
}

void Socket::State::set_timer() {
  const auto next = due();
  if (is_readable() || !events.empty() || !received_early.empty()) {
    timer.set(milliseconds(0));
  } else if (!queue.empty() && (is_router || is_connected)) {
    timer.set(kNextTry);
  } else if (next) {
    timer.set(*next);
  } else {
    timer.clear();
  }
}

std::optional<Envelope> Socket::State::next_message() {
  Envelope message;
  // Interrupted between two frames, the next call goes on with the second.
  const auto received = zmq_call("zmq_msg_recv", [&] {
    return zmq::recv_multipart(socket, std::back_inserter(message.frames),
                               zmq::recv_flags::dontwait);
  });
  if (!received) return std::nullopt;
  if (is_router) {
    message.peer = message.frames.front().to_string();
    message.frames.erase(message.frames.begin());
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
  return decode(bytes_in(message.frames.front()), &problem);
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

void Socket::State::keep_caller(Received& message) {
  note_link_changes();
  callers.accept(connection_of(message));
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
  auto state = std::make_unique<State>(context, zmq::socket_type::router, limits);
  state->port = listener.port();
  set_option(state->socket, zmq::sockopt::router_mandatory, true);
  set_option(state->socket, zmq::sockopt::use_fd, listener.descriptor());
  // ZeroMQ requires an address to bind to but does not use it: the socket is bound already.
  zmq_call("zmq_bind", [&] { state->socket.bind("tcp://127.0.0.1:*"); });
  (void)listener.release().release();  // ZeroMQ closes the descriptor
  return std::unique_ptr<Socket>(new Socket(std::move(state)));
}

std::unique_ptr<Socket> Socket::connect(Context& context, const Endpoint& to,
                                        const SocketLimits& limits) {
  auto state = std::make_unique<State>(context, zmq::socket_type::dealer, limits);
  // Without a connection ZeroMQ must not queue messages itself: that queue could not be cleared.
  set_option(state->socket, zmq::sockopt::immediate, true);
  state->reconnector.emplace(state->socket, to);
  if (limits.nonce) state->calls.emplace(*limits.nonce, std::string(state->reconnector->target()));
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
  const bool has_peer = state.is_router ? state.queue.send(std::move(message))
                                        : state.send_over_link(std::move(message));
  state.set_timer();
  return has_peer;
}

void Socket::flush() {
  state_->process_link_changes();
  state_->look_for_challenge();
  if (!state_->queue.empty()) {
    (void)state_->is_readable();
    state_->queue.flush();
  }
  state_->set_timer();
}

std::int64_t Socket::queued_bytes() const noexcept { return state_->queue.bytes(); }

std::optional<Received> Socket::State::next_received() {
  while (std::optional<Envelope> message = next_message()) {
    std::string problem;
    if (std::optional<MessageT> header = header_of(*message, problem)) {
      Received received{std::move(*message), std::move(*header)};
      if (limits.nonce) {
        if (take_greeting(received)) continue;
      } else if (is_router && limits.is_greeting && limits.is_greeting(received.header)) {
        keep_caller(received);
      }
      return received;
    }
    ++foreign_messages;
    if (answers) {
      std::optional<Envelope> refusal = GreetingAnswers::refuse_other_version(*message);
      if (refusal) queue.send(std::move(*refusal));
    }
    log_dropped(*message, problem);
  }
  return std::nullopt;
}

void Socket::State::look_for_challenge() {
  if (!calls || !calls->waits_for_challenge()) return;
  if (auto received = next_received()) received_early.push_back(std::move(*received));
}

std::optional<Received> Socket::receive() {
  State& state = *state_;
  std::optional<Received> received;
  if (state.received_early.empty()) {
    received = state.next_received();
  } else {
    received = std::move(state.received_early.front());
    state.received_early.pop_front();
  }
  if (!received) state.set_timer();
  return received;
}

void Socket::log_dropped(Envelope& message, const std::string& problem) {
  state_->log_dropped(message, problem);
}

std::int64_t Socket::callers_without_greeting() const noexcept { return state_->callers.ended(); }

std::optional<LinkEvent> Socket::link_event() {
  State& state = *state_;
  state.process_link_changes();
  state.look_for_challenge();
  std::optional<LinkEvent> event;
  if (!state.events.empty()) {
    event = state.events.front();
    state.events.pop_front();
  }
  state.set_timer();
  return event;
}

bool Socket::lacks_challenge() const noexcept {
  return state_->calls && state_->calls->lacks_challenge();
}

std::int64_t Socket::foreign_messages() const noexcept { return state_->foreign_messages; }

std::vector<int> Socket::descriptors() const {
  return {get_option(state_->socket, zmq::sockopt::fd), state_->monitor.descriptor(),
          state_->timer.descriptor()};
}

int Socket::link_descriptor() const { return state_->monitor.descriptor(); }

std::optional<std::chrono::nanoseconds> Socket::due() const { return state_->due(); }

}  // namespace syncopate::ps::wire
