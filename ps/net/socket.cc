#include "ps/net/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using NameOf = int(int, sockaddr*, socklen_t*);

std::string address_of(int descriptor, NameOf* name_of) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (name_of(descriptor, generic, &length) != 0) return "";
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return "";
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(generic, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  const std::string_view host = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  const bool mapped = host.starts_with(kMapped) && host.find('.') != std::string_view::npos;
  return std::string(mapped ? host.substr(kMapped.size()) : host);
}

}  // namespace

void prepare_tcp_socket(int descriptor) noexcept {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor, F_SETFD, fcntl(descriptor, F_GETFD) | FD_CLOEXEC);
  const int yes = 1;
  if (setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0) return;  // not TCP
  const std::string remote = remote_address(descriptor);
  if (is_loopback(remote) || (!remote.empty() && remote == local_address(descriptor))) {
    constexpr std::string_view kReno = "reno";
    setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, kReno.data(), kReno.size());
  }
}

bool wait_ready(int descriptor, short events, const Deadline& deadline) {
  for (;;) {
    pollfd waiting{descriptor, events, 0};
    const int ready = poll(&waiting, 1, deadline.remaining_milliseconds());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw FileError(describe_errno("poll", "a socket", errno));
    if (deadline.passed()) return false;
  }
}

std::string local_address(int descriptor) { return address_of(descriptor, getsockname); }

std::string remote_address(int descriptor) { return address_of(descriptor, getpeername); }

bool is_loopback(std::string_view address) noexcept {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace syncopate
