#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>

#include "models/base/errors.h"
#include "ps/net/addresses.h"
#include "ps/net/connection.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

// A host that drops what it does not like keeps its other addresses waiting no longer than this.
constexpr milliseconds kOneAttempt(3000);
constexpr milliseconds kFirstPause(20);
constexpr milliseconds kLongestPause(500);

// Who calls a free port of its own machine may get that port as its own and reach itself.
bool reached_itself(int descriptor) {
  sockaddr_storage ours{};
  sockaddr_storage theirs{};
  socklen_t length = sizeof ours;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&ours), &length);
  length = sizeof theirs;
  getpeername(descriptor, reinterpret_cast<sockaddr*>(&theirs), &length);
  return std::memcmp(&ours, &theirs, sizeof ours) == 0;
}

// 0 or errno's value.
int try_connect(const addrinfo& address, const FileDescriptor& socket, const Deadline& deadline) {
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    const auto patience = std::min<std::chrono::nanoseconds>(kOneAttempt, deadline.remaining());
    if (!wait_ready(socket.get(), POLLOUT, Deadline::after(patience))) return ETIMEDOUT;
    int reason = 0;
    socklen_t length = sizeof reason;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &length);
    if (reason != 0) return reason;
  }
  return reached_itself(socket.get()) ? ECONNREFUSED : 0;
}

}  // namespace

Connection connect_to(const Endpoint& endpoint, const std::string& peer, const Deadline& deadline) {
  std::string reason;
  std::optional<Deadline> unknown;  // since when nobody knows the host
  for (milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    Addresses found;
    try {
      found = look_up(endpoint, 0);
      unknown.reset();
    } catch (const UsageError&) {
      if (!unknown) unknown = Deadline::after(kUnknownHostPatience);
      if (unknown->passed() || deadline.passed()) throw;
    }
    reason = found.trouble;
    for (const addrinfo* address = found.list.get(); address != nullptr;
         address = address->ai_next) {
      FileDescriptor socket(
          ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int error_number = socket ? try_connect(*address, socket, deadline) : errno;
      if (error_number == 0) return Connection(std::move(socket), peer);
      reason = std::generic_category().message(error_number);
    }
    if (deadline.passed()) break;
    const auto rest = std::chrono::ceil<milliseconds>(deadline.remaining());
    poll(nullptr, 0, static_cast<int>(std::min(pause, rest).count()));
  }
  throw PeerError(peer + " could not be reached at " + to_string(endpoint) + " within " +
                  in_seconds(deadline.patience()) + ": " + reason +
                  "; is it running, and may this machine call that port?");
}

}  // namespace syncopate
