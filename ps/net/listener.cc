// Implements Listener, the listening socket that connection.h declares.
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "models/base/errors.h"
#include "ps/net/connection.h"

namespace syncopate {
namespace {

// The length of a listening socket's queue: all tasks of a job connect at once.
constexpr int kListenBacklog = 1024;

bool means_every_interface(const std::string& host) {
  return host.empty() || host == "0.0.0.0" || host == "::";
}

std::string numeric(const addrinfo& address) {
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(address.ai_addr, address.ai_addrlen, text.data(), text.size(), nullptr, 0,
              NI_NUMERICHOST);
  return text.data();
}

// Debian maps a machine's own name to 127.0.1.1. A socket that listened only there could not be
// reached through the address that other machines look up for this name.
bool is_name_of_loopback(const std::string& host, const addrinfo* addresses) {
  if (host == "localhost" || is_loopback(host)) return false;
  for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next) {
    if (!is_loopback(numeric(*address))) return false;
  }
  return true;
}

// Listens at the address. Returns an empty descriptor on failure, with errno set.
FileDescriptor listen_at(const addrinfo& address) {
  FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  const int yes = 1;
  const int no = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  // The IPv6 socket accepts IPv4 connections, too.
  setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      listen(socket.get(), kListenBacklog) != 0) {
    const int reason = errno;
    socket.reset();
    errno = reason;
  }
  return socket;
}

// Listens at the first address that can be bound. IPv6 comes before IPv4: an IPv6 socket at every
// interface also accepts IPv4 connections, an IPv4 socket does not accept IPv6.
FileDescriptor listen_at_first(const addrinfo* addresses) {
  int reason = EADDRNOTAVAIL;
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next) {
      if (address->ai_family != family) continue;
      FileDescriptor socket = listen_at(*address);
      if (socket) return socket;
      if (reason != EADDRINUSE) reason = errno;
    }
  }
  errno = reason;
  return {};
}

[[noreturn]] void report_unusable(const Endpoint& endpoint, int reason) {
  const std::string where = "cannot listen at " + to_string(endpoint);
  switch (reason) {
    case EADDRINUSE:
      throw UsageError(
          fmt::format("{}: port {} is in use by another program; choose another port, or end that "
                      "program",
                      where, endpoint.port));
    case EADDRNOTAVAIL:
      throw UsageError(
          fmt::format("{}: '{}' is not an address of this machine; a task that listens must run on "
                      "the machine that the other tasks call",
                      where, endpoint.host));
    case EACCES:
      throw UsageError(
          fmt::format("{}: port {} is reserved; choose one from 1024 on", where, endpoint.port));
    default:
      throw UsageError(describe_errno("listen at", to_string(endpoint), reason));
  }
}

FileDescriptor open_listening(const Endpoint& endpoint) {
  Addresses found = look_up(
      {means_every_interface(endpoint.host) ? "" : endpoint.host, endpoint.port}, AI_PASSIVE);
  if (found.list && is_name_of_loopback(endpoint.host, found.list.get())) {
    found = look_up({"", endpoint.port}, AI_PASSIVE);
  }
  if (!found.list) {
    throw UsageError(
        fmt::format("cannot look up the host of {}: {}", to_string(endpoint), found.error));
  }
  FileDescriptor socket = listen_at_first(found.list.get());
  if (!socket) report_unusable(endpoint, errno);
  return socket;
}

}  // namespace

Listener::Listener(const Endpoint& endpoint) : socket_(open_listening(endpoint)) {}

Listener::Listener(FileDescriptor listening) : socket_(std::move(listening)) {
  int is_listening = 0;
  socklen_t length = sizeof is_listening;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &length) != 0 ||
      is_listening == 0) {
    throw UsageError(fmt::format(
        "descriptor {} was passed to this program as a listening socket but is not one; "
        "start the program with `syncopate launch`, or without SYNCOPATE_* variables "
        "left from an earlier launch",
        socket_.release()));
  }
  fcntl(socket_.get(), F_SETFD, FD_CLOEXEC);
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

std::uint16_t Listener::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::optional<Connection> Listener::accept(const Deadline& deadline) {
  for (;;) {
    FileDescriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      const std::string from = remote_address(socket.get());
      return Connection(std::move(socket),
                        "a caller from " + (from.empty() ? "this machine" : from));
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      throw FileError(describe_errno("accept", "a connection", errno));
    }
    // Any other error of accept() means that no caller waits, or that the caller is gone already.
    if (!wait_ready(socket_.get(), POLLIN, deadline)) return std::nullopt;
  }
}

}  // namespace syncopate
