// Preloaded into a peer: its TCP sockets use the congestion control `reno`, as ours do on loopback.
// The system's default may be BBR, whose pacing costs 1.5 to 2.5 times there, and the peers have no
// option for it. A socket that is accepted inherits it from the one that listens.
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string_view>

namespace {

// A refusal leaves the default, and sockets of other families refuse: both are fine.
void use_reno(int socket) {
  constexpr std::string_view kName = "reno";
  ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kName.data(), kName.size());
}

}  // namespace

// The parameters are named as in the system's headers.
extern "C" int connect(int fd, const sockaddr* addr, socklen_t len) {
  using Connect = int (*)(int, const sockaddr*, socklen_t);
  static const auto kNext = reinterpret_cast<Connect>(::dlsym(RTLD_NEXT, "connect"));
  use_reno(fd);
  return kNext(fd, addr, len);
}

extern "C" int listen(int fd, int n) {
  using Listen = int (*)(int, int);
  static const auto kNext = reinterpret_cast<Listen>(::dlsym(RTLD_NEXT, "listen"));
  use_reno(fd);
  return kNext(fd, n);
}
