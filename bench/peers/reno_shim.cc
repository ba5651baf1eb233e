// A library that is preloaded into a peer and sets the congestion control of its TCP sockets to
// `reno`, as our sockets have on loopback. The system's default may be BBR: its pacing makes
// transfers 1.5 to 2.5 times slower there, and the peers have no option for it. An accepted socket
// inherits the setting of the listening socket.
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string_view>

namespace {

// Sets the congestion control reno. Errors are ignored: the default remains, and sockets other than
// TCP always refuse.
void use_reno(int socket) {
  constexpr std::string_view kName = "reno";
  ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kName.data(), kName.size());
}

}  // namespace

// The parameters of socket() have the names of the system's headers.
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
