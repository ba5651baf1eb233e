// Looks for an address of this machine, for tests of sockets that others may reach.
#pragma once

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <string>
#include <string_view>

namespace syncopate {

// Returns an IPv4 address of this machine that is not loopback; empty if it has none.
inline std::string outer_address() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  std::string found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text.data(),
              text.size());
    if (!std::string_view(text.data()).starts_with("127.")) found = text.data();
  }
  freeifaddrs(list);
  return found;
}

}  // namespace syncopate
