// Finds where a process listens, as the kernel reports it.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::test {

struct ListeningSocket {
  // In the notation of /proc/net/tcp: "0100007F" is 127.0.0.1, zeros stand for every interface.
  std::string address;
  std::uint16_t port = 0;
  auto operator<=>(const ListeningSocket&) const = default;
};

// Returns the TCP sockets at which the process listens; none if it has ended.
std::vector<ListeningSocket> listening_sockets(pid_t process);
bool is_every_interface(const ListeningSocket& socket);

}  // namespace syncopate::test
