#include "ps/wire/link_monitor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "ps/net/socket.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps::wire {
namespace {

using std::chrono::milliseconds;

constexpr int kFirstReconnectMs = 20;
constexpr int kLongestReconnectMs = 500;
// ZeroMQ tries only one address family of a host name that has both. The other family is tried
// after this number of failed attempts.
constexpr int kRetriesPerFamily = 4;
// After a failed connection ZeroMQ reports at once whether it will connect again; without such a
// report within this time it has given up.
constexpr milliseconds kRetryReport(500);

// ZeroMQ's monitor sends a frame of event (16 bits) and value (32 bits), then the endpoint.
struct MonitorEvent {
  std::uint16_t number = 0;
  std::int32_t value = 0;
};

bool receive_part(void* socket, ZmqFrame& part) {
  while (zmq_msg_recv(&part.content(), socket, ZMQ_DONTWAIT) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

std::optional<MonitorEvent> receive_event(void* socket) {
  ZmqFrame first;
  if (!receive_part(socket, first)) return std::nullopt;
  MonitorEvent event;
  const std::span<const std::byte> bytes = first.bytes();
  if (bytes.size() == sizeof event.number + sizeof event.value) {
    std::memcpy(&event.number, bytes.data(), sizeof event.number);
    std::memcpy(&event.value, bytes.data() + sizeof event.number, sizeof event.value);
  }
  for (bool more = zmq_msg_more(&first.content()) != 0; more;) {
    ZmqFrame rest;
    more = receive_part(socket, rest) && zmq_msg_more(&rest.content()) != 0;
  }
  return event;
}

// Sets reno as congestion control, as prepare_tcp_socket() does for other sockets. The descriptor
// is ZeroMQ's, which may have closed it and reused its number: the option is harmless on any
// socket.
void prefer_reno_on_this_machine(int descriptor) noexcept {
  const std::string remote = remote_address(descriptor);
  if (!is_loopback(remote) && (remote.empty() || remote != local_address(descriptor))) return;
  constexpr std::string_view kReno = "reno";
  setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, kReno.data(), kReno.size());
}

bool is_ipv4_address(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}

}  // namespace

LinkMonitor::LinkMonitor(Context& context, const SocketHandle& socket)
    : watched_(socket), events_(context.make_socket(ZMQ_PAIR)) {
  // The monitor's queue has no limit: ZeroMQ's I/O thread would block when the queue is full.
  set_option(events_, ZMQ_RCVHWM, 0);
  const std::string name = context.unused_name();
  constexpr int kEvents = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                          ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
  check_zmq(zmq_socket_monitor(watched_.get(), name.c_str(), kEvents), "zmq_socket_monitor");
  check_zmq(zmq_connect(events_.get(), name.c_str()), "zmq_connect of a monitor");
}

// Ends the socket's monitor first: without its reader ZeroMQ's I/O thread would block.
LinkMonitor::~LinkMonitor() { zmq_socket_monitor(watched_.get(), nullptr, 0); }

std::optional<LinkMonitor::Change> LinkMonitor::next() {
  using enum LinkChange;
  while (const std::optional<MonitorEvent> event = receive_event(events_.get())) {
    switch (event->number) {
      case ZMQ_EVENT_CONNECTED:
      case ZMQ_EVENT_ACCEPTED:
        prefer_reno_on_this_machine(event->value);
        return Change{kOpened, event->value};
      case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        return Change{kHandshake};
      case ZMQ_EVENT_DISCONNECTED:
        return Change{kClosed, event->value};
      case ZMQ_EVENT_CONNECT_RETRIED:
        return Change{kRetried};
      default:
        break;
    }
  }
  return std::nullopt;
}

int LinkMonitor::descriptor() const {
  int descriptor = -1;
  std::size_t length = sizeof descriptor;
  check_zmq(zmq_getsockopt(events_.get(), ZMQ_FD, &descriptor, &length), "zmq_getsockopt ZMQ_FD");
  return descriptor;
}

Reconnector::Reconnector(const SocketHandle& socket, const Endpoint& to)
    : socket_(socket),
      target_("tcp://" + to_string(to)),
      has_name_(!is_ipv4_address(to.host) && to.host.find(':') == std::string::npos),
      uses_ipv6_(to.host.find(':') != std::string::npos) {
  set_option(socket_, ZMQ_RECONNECT_IVL, kFirstReconnectMs);
  set_option(socket_, ZMQ_RECONNECT_IVL_MAX, kLongestReconnectMs);
  connect();
}

void Reconnector::connect() {
  set_option(socket_, ZMQ_IPV6, uses_ipv6_ ? 1 : 0);
  check_zmq(zmq_connect(socket_.get(), target_.c_str()), "zmq_connect to " + target_);
}

void Reconnector::on_link_change(LinkChange change) {
  switch (change) {
    case LinkChange::kOpened:
    case LinkChange::kHandshake:
      retries_ = 0;
      reconnect_at_.reset();
      break;
    // ZeroMQ does not connect again to a peer that does not use ZMTP or that sent too long a frame.
    case LinkChange::kClosed:
      reconnect_at_ = Deadline::after(kRetryReport);
      break;
    case LinkChange::kRetried:
      reconnect_at_.reset();
      if (has_name_ && ++retries_ == kRetriesPerFamily) {
        retries_ = 0;
        uses_ipv6_ = !uses_ipv6_;
        reconnect_at_ = Deadline::after(milliseconds(0));
      }
      break;
  }
}

std::optional<std::chrono::nanoseconds> Reconnector::due() const {
  if (!reconnect_at_) return std::nullopt;
  return reconnect_at_->remaining();
}

void Reconnector::reconnect_if_due() {
  if (!reconnect_at_ || !reconnect_at_->passed()) return;
  reconnect_at_.reset();
  // zmq_disconnect() fails, without harm, when ZeroMQ has dropped the connection already.
  zmq_disconnect(socket_.get(), target_.c_str());
  connect();
}

}  // namespace syncopate::ps::wire
