#include "ps/wire/link_monitor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "ps/net/socket.h"
#include "ps/wire/frame_content.h"

namespace syncopate::ps::wire {
namespace {

// Source: zmq_socket_monitor(3): a frame of event (16 bits) and value (32 bits), then the endpoint.
struct Event {
  std::uint16_t number = 0;
  std::int32_t value = 0;
};

bool receive_part(void* socket, Frame::Content& part) {
  while (zmq_msg_recv(&part.message, socket, ZMQ_DONTWAIT) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

std::optional<Event> receive_event(void* socket) {
  Frame::Content first;
  if (!receive_part(socket, first)) return std::nullopt;
  Event event;
  if (zmq_msg_size(&first.message) == sizeof event.number + sizeof event.value) {
    const auto* bytes = static_cast<const std::byte*>(zmq_msg_data(&first.message));
    std::memcpy(&event.number, bytes, sizeof event.number);
    std::memcpy(&event.value, bytes + sizeof event.number, sizeof event.value);
  }
  for (bool more = zmq_msg_more(&first.message) != 0; more;) {
    Frame::Content rest;
    more = receive_part(socket, rest) && zmq_msg_more(&rest.message) != 0;
  }
  return event;
}

// As ps/net/socket.h has it for sockets of our own. This one is ZeroMQ's, and may be closed
// and another one by now: nothing is done to it that could do harm.
void prefer_reno_on_this_machine(int descriptor) noexcept {
  const std::string remote = remote_address(descriptor);
  if (!is_loopback(remote) && (remote.empty() || remote != local_address(descriptor))) return;
  constexpr std::string_view kReno = "reno";
  setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, kReno.data(), kReno.size());
}

}  // namespace

LinkMonitor::LinkMonitor(Context& context, const SocketHandle& socket)
    : watched_(socket), news_(context.make_socket(ZMQ_PAIR)) {
  // Without a limit: at a full pipe the I/O thread would wait for us.
  set_option(news_, ZMQ_RCVHWM, 0);
  const std::string name = context.unused_name();
  constexpr int kEvents = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                          ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
  check_zmq(zmq_socket_monitor(watched_.get(), name.c_str(), kEvents), "zmq_socket_monitor");
  check_zmq(zmq_connect(news_.get(), name.c_str()), "zmq_connect of a monitor");
}

// Before our end closes: without a reader the I/O thread would wait for one.
LinkMonitor::~LinkMonitor() { zmq_socket_monitor(watched_.get(), nullptr, 0); }

std::optional<LinkNews> LinkMonitor::next() {
  using enum LinkNews;
  while (const std::optional<Event> event = receive_event(news_.get())) {
    switch (event->number) {
      case ZMQ_EVENT_CONNECTED:
      case ZMQ_EVENT_ACCEPTED:
        prefer_reno_on_this_machine(event->value);
        return kOpened;
      case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        return kGreeted;
      case ZMQ_EVENT_DISCONNECTED:
        return kClosed;
      case ZMQ_EVENT_CONNECT_RETRIED:
        return kRetried;
      default:
        break;
    }
  }
  return std::nullopt;
}

int LinkMonitor::descriptor() const {
  int descriptor = -1;
  std::size_t length = sizeof descriptor;
  check_zmq(zmq_getsockopt(news_.get(), ZMQ_FD, &descriptor, &length), "zmq_getsockopt ZMQ_FD");
  return descriptor;
}

}  // namespace syncopate::ps::wire
