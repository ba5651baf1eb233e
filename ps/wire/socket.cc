#include "ps/wire/socket.h"

#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "ps/wire/alarm.h"
#include "ps/wire/dialer.h"
#include "ps/wire/frame_content.h"
#include "ps/wire/link_monitor.h"
#include "ps/wire/outbox.h"
#include "ps/wire/strangers.h"

namespace syncopate::ps::wire {
namespace {

using std::chrono::milliseconds;

// ZeroMQ does not always say when a peer's pipe has room again.
constexpr milliseconds kNextTry(5);

bool receive_frame(const SocketHandle& socket, Frame& frame) {
  while (zmq_msg_recv(&frame.content().message, socket.get(), ZMQ_DONTWAIT) < 0) {
    if (errno == EAGAIN) return false;
    if (errno != EINTR) check_zmq(-1, "zmq_msg_recv");
  }
  return true;
}

bool has_more(Frame& frame) { return zmq_msg_more(&frame.content().message) != 0; }

SocketHandle make_socket(Context& context, int type, const SocketLimits& limits) {
  SocketHandle socket = context.make_socket(type);
  check_zmq(zmq_setsockopt(socket.get(), ZMQ_MAXMSGSIZE, &limits.longest_frame,
                           sizeof limits.longest_frame),
            "zmq_setsockopt ZMQ_MAXMSGSIZE");
  return socket;
}

}  // namespace

struct Socket::State {
  State(Context& context, int type, const SocketLimits& with_limits)
      : limits(with_limits),
        routes(type == ZMQ_ROUTER),
        socket(make_socket(context, type, limits)),
        monitor(context, socket),
        outbox(socket, routes) {
    // ZeroMQ would for a moment take messages for a connection that is no more.
    outbox.hold(!routes);
  }

  // What has become of the connections. Also lets ZeroMQ take note of it: it tells us first.
  void attend_links();
  void hear(LinkNews news);
  // Whether a message waits. Lets ZeroMQ take note of everything that has happened.
  bool is_readable() const;
  // At the end of every call that may have taken note of something the caller has not heard of.
  void set_alarm();
  // Parts of a whole message; more than `most_frames` are received and dropped.
  std::optional<Envelope> next_message();
  std::string trouble_with(const Envelope& message) const;

  const SocketLimits limits;
  const bool routes;
  SocketHandle socket;
  LinkMonitor monitor;
  Outbox outbox;
  Alarm alarm;
  std::optional<Dialer> dialer;  // of a DEALER
  std::uint16_t port = 0;        // of a ROUTER
  bool is_connected = false;
  std::deque<LinkEvent> untold;
  Strangers strangers;
};

void Socket::State::hear(LinkNews news) {
  if (routes) return;
  dialer->hear(news);
  if (news == LinkNews::kGreeted) {
    is_connected = true;
    outbox.hold(false);
    untold.push_back(LinkEvent::kConnected);
  } else if (news == LinkNews::kClosed && is_connected) {
    is_connected = false;
    outbox.hold(true);
    outbox.clear();
    untold.push_back(LinkEvent::kDisconnected);
  }
}

void Socket::State::attend_links() {
  while (const std::optional<LinkNews> news = monitor.next()) {
    hear(*news);
    (void)is_readable();
  }
  if (dialer) dialer->redial();
}

bool Socket::State::is_readable() const {
  int events = 0;
  std::size_t length = sizeof events;
  check_zmq(zmq_getsockopt(socket.get(), ZMQ_EVENTS, &events, &length),
            "zmq_getsockopt ZMQ_EVENTS");
  return (events & ZMQ_POLLIN) != 0;
}

void Socket::State::set_alarm() {
  const auto due = dialer ? dialer->due() : std::nullopt;
  if (is_readable() || !untold.empty()) {
    alarm.set(milliseconds(0));
  } else if (!outbox.empty() && (routes || is_connected)) {
    alarm.set(kNextTry);
  } else if (due) {
    alarm.set(*due);
  } else {
    alarm.clear();
  }
}

std::optional<Envelope> Socket::State::next_message() {
  Envelope message;
  Frame frame;
  if (!receive_frame(socket, frame)) return std::nullopt;
  bool more = true;
  if (routes) {
    const auto id = frame.bytes();
    message.peer.assign(reinterpret_cast<const char*>(id.data()), id.size());
    more = has_more(frame);
    if (more) receive_frame(socket, frame);
  }
  while (more) {
    more = has_more(frame);
    // One too many is kept, as evidence.
    if (std::cmp_less_equal(message.frames.size(), limits.most_frames)) {
      message.frames.push_back(std::move(frame));
      frame = Frame();
    }
    if (more) receive_frame(socket, frame);
  }
  return message;
}

std::string Socket::State::trouble_with(const Envelope& message) const {
  if (message.frames.empty()) return "a message without a frame";
  if (std::cmp_greater(message.frames.size(), limits.most_frames)) {
    return "a message of more than " + std::to_string(limits.most_frames) + " frames";
  }
  std::string trouble;
  is_header(message.frames.front().bytes(), &trouble);
  return trouble;
}

Socket::Socket(std::unique_ptr<State> state) : state_(std::move(state)) {}
Socket::~Socket() = default;

std::unique_ptr<Socket> Socket::listen(Context& context, const Endpoint& at,
                                       const SocketLimits& limits) {
  return listen(context, Listener(at).release(), limits);
}

std::unique_ptr<Socket> Socket::listen(Context& context, FileDescriptor listening,
                                       const SocketLimits& limits) {
  Listener listener(std::move(listening));  // that it is one
  auto state = std::make_unique<State>(context, ZMQ_ROUTER, limits);
  state->port = listener.port();
  set_option(state->socket, ZMQ_ROUTER_MANDATORY, 1);
  set_option(state->socket, ZMQ_ROUTER_HANDOVER, 1);
  set_option(state->socket, ZMQ_USE_FD, listener.descriptor());
  // The address is for form's sake: the socket is bound.
  check_zmq(zmq_bind(state->socket.get(), "tcp://127.0.0.1:*"), "zmq_bind");
  (void)listener.release().release();  // ZeroMQ closes it
  return std::unique_ptr<Socket>(new Socket(std::move(state)));
}

std::unique_ptr<Socket> Socket::connect(Context& context, const Endpoint& to,
                                        std::string routing_id, const SocketLimits& limits) {
  auto state = std::make_unique<State>(context, ZMQ_DEALER, limits);
  // No queue of ZeroMQ's before there is a connection: it could not be dropped.
  set_option(state->socket, ZMQ_IMMEDIATE, 1);
  if (!routing_id.empty()) {
    check_zmq(
        zmq_setsockopt(state->socket.get(), ZMQ_ROUTING_ID, routing_id.data(), routing_id.size()),
        "zmq_setsockopt ZMQ_ROUTING_ID '" + routing_id + "'");
  }
  state->dialer.emplace(state->socket, to);
  return std::unique_ptr<Socket>(new Socket(std::move(state)));
}

std::uint16_t Socket::port() const { return state_->port; }

bool Socket::send(Envelope message) {
  State& state = *state_;
  state.attend_links();
  const auto& untold = state.untold;
  if (std::find(untold.begin(), untold.end(), LinkEvent::kDisconnected) != untold.end()) {
    state.set_alarm();
    return false;
  }
  const bool is_there = state.outbox.send(std::move(message));
  state.set_alarm();
  return is_there;
}

void Socket::flush() {
  state_->attend_links();
  if (!state_->outbox.empty()) {
    (void)state_->is_readable();
    state_->outbox.flush();
  }
  state_->set_alarm();
}

std::int64_t Socket::queued_bytes() const noexcept { return state_->outbox.bytes(); }

std::optional<Envelope> Socket::receive() {
  while (std::optional<Envelope> message = state_->next_message()) {
    const std::string trouble = state_->trouble_with(*message);
    if (trouble.empty()) return message;
    state_->strangers.count(state_->dialer ? std::string(state_->dialer->target()) : message->peer,
                            trouble);
  }
  state_->set_alarm();
  return std::nullopt;
}

std::optional<LinkEvent> Socket::link_event() {
  State& state = *state_;
  state.attend_links();
  std::optional<LinkEvent> event;
  if (!state.untold.empty()) {
    event = state.untold.front();
    state.untold.pop_front();
  }
  state.set_alarm();
  return event;
}

std::int64_t Socket::foreign_messages() const noexcept { return state_->strangers.messages(); }

std::vector<int> Socket::descriptors() const {
  int descriptor = -1;
  std::size_t length = sizeof descriptor;
  check_zmq(zmq_getsockopt(state_->socket.get(), ZMQ_FD, &descriptor, &length),
            "zmq_getsockopt ZMQ_FD");
  return {descriptor, state_->monitor.descriptor(), state_->alarm.descriptor()};
}

}  // namespace syncopate::ps::wire
