#include "ps/wire/dialer.h"

#include <arpa/inet.h>
#include <zmq.h>

#include <array>

namespace syncopate::ps::wire {
namespace {

using std::chrono::milliseconds;

constexpr int kFirstPauseMs = 20;
constexpr int kLongestPauseMs = 500;
// Of a host with addresses of both families, ZeroMQ calls one family only: after so many attempts
// in vain it is the other's turn.
constexpr int kRetriesPerFamily = 4;
// ZeroMQ says at once whether it will call again.
constexpr milliseconds kHopeless(500);

bool is_address(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(family, host.c_str(), address.data()) == 1;
}

}  // namespace

Dialer::Dialer(const SocketHandle& socket, const Endpoint& to)
    : socket_(socket),
      target_("tcp://" + to_string(to)),
      has_name_(!is_address(AF_INET, to.host) && to.host.find(':') == std::string::npos),
      wants_ipv6_(to.host.find(':') != std::string::npos) {
  set_option(socket_, ZMQ_RECONNECT_IVL, kFirstPauseMs);
  set_option(socket_, ZMQ_RECONNECT_IVL_MAX, kLongestPauseMs);
  dial();
}

void Dialer::dial() {
  set_option(socket_, ZMQ_IPV6, wants_ipv6_ ? 1 : 0);
  check_zmq(zmq_connect(socket_.get(), target_.c_str()), "zmq_connect to " + target_);
}

void Dialer::hear(LinkNews news) {
  switch (news) {
    case LinkNews::kOpened:
    case LinkNews::kGreeted:
      retries_ = 0;
      hopeless_.reset();
      break;
    // What does not speak ZMTP, or sends too long a frame, is called once only.
    case LinkNews::kClosed:
      hopeless_ = Deadline::after(kHopeless);
      break;
    case LinkNews::kRetried:
      hopeless_.reset();
      if (has_name_ && ++retries_ == kRetriesPerFamily) {
        retries_ = 0;
        wants_ipv6_ = !wants_ipv6_;
        hopeless_ = Deadline::after(milliseconds(0));
      }
      break;
  }
}

std::optional<std::chrono::nanoseconds> Dialer::due() const {
  if (!hopeless_) return std::nullopt;
  return hopeless_->remaining();
}

void Dialer::redial() {
  if (!hopeless_ || !hopeless_->passed()) return;
  hopeless_.reset();
  // Where nothing is left to disconnect this fails, and that is as well.
  zmq_disconnect(socket_.get(), target_.c_str());
  dial();
}

}  // namespace syncopate::ps::wire
