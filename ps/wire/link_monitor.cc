#include "ps/wire/link_monitor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>
#include <iterator>
#include <vector>
#include <zmq_addon.hpp>

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
std::optional<zmq_event_t> receive_event(zmq::socket_ref socket) {
  std::vector<zmq::message_t> frames;
  const auto received = zmq_call("zmq_msg_recv", [&] {
    return zmq::recv_multipart(socket, std::back_inserter(frames), zmq::recv_flags::dontwait);
  });
  if (!received) return std::nullopt;
  zmq_event_t event{};
  const std::span<const std::byte> bytes = bytes_in(frames.front());
  if (bytes.size() == sizeof event.event + sizeof event.value) {
    std::memcpy(&event.event, bytes.data(), sizeof event.event);
    std::memcpy(&event.value, bytes.data() + sizeof event.event, sizeof event.value);
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

LinkMonitor::LinkMonitor(Context& context, zmq::socket_ref socket)
    : watched_(socket), events_(context.make_socket(zmq::socket_type::pair)) {
  // The monitor's queue has no limit: ZeroMQ's I/O thread would block when the queue is full.
  set_option(events_, zmq::sockopt::rcvhwm, 0);
  const std::string name = context.unused_name();
  constexpr int kEvents = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                          ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
  zmq_call("zmq_socket_monitor", [&] {
    if (zmq_socket_monitor(watched_.handle(), name.c_str(), kEvents) != 0) throw zmq::error_t();
  });
  zmq_call("zmq_connect of a monitor", [&] { events_.connect(name); });
}

// Ends the socket's monitor first: without its reader ZeroMQ's I/O thread would block.
LinkMonitor::~LinkMonitor() { zmq_socket_monitor(watched_.handle(), nullptr, 0); }

std::optional<LinkMonitor::Change> LinkMonitor::next() {
  using enum LinkChange;
  while (const std::optional<zmq_event_t> event = receive_event(events_)) {
    switch (event->event) {
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

int LinkMonitor::descriptor() const { return get_option(events_, zmq::sockopt::fd); }

Reconnector::Reconnector(zmq::socket_ref socket, const Endpoint& to)
    : socket_(socket),
      target_("tcp://" + to_string(to)),
      has_name_(!is_ipv4_address(to.host) && to.host.find(':') == std::string::npos),
      uses_ipv6_(to.host.find(':') != std::string::npos) {
  set_option(socket_, zmq::sockopt::reconnect_ivl, kFirstReconnectMs);
  set_option(socket_, zmq::sockopt::reconnect_ivl_max, kLongestReconnectMs);
  connect();
}

void Reconnector::connect() {
  set_option(socket_, zmq::sockopt::ipv6, uses_ipv6_);
  zmq_call("zmq_connect to " + target_, [&] { socket_.connect(target_); });
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
  try {
    socket_.disconnect(target_);
  } catch (const zmq::error_t&) {
    // ZeroMQ has dropped the connection already.
  }
  connect();
}

}  // namespace syncopate::ps::wire
