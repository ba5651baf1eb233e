#include "ps/net/endpoint.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>
#include <set>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/parse_number.h"
#include "ps/net/socket.h"

namespace syncopate {
namespace {

constexpr int kLookUpAgainMs = 200;

// Calls getaddrinfo(3), and returns its result.
int resolve(const Endpoint& endpoint, int flags, Addresses& found) {
  const addrinfo wanted{
      .ai_flags = flags | AI_NUMERICSERV, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* list = nullptr;
  const int code = getaddrinfo(endpoint.host.empty() ? nullptr : endpoint.host.c_str(),
                               fmt::format("{}", endpoint.port).c_str(), &wanted, &list);
  found.list.reset(list);
  return code;
}

UsageError unreadable_endpoint(std::string_view what, std::string_view text,
                               std::string_view found) {
  return UsageError(fmt::format(
      "{} '{}': {}; expected HOST:PORT, as in node3:13565 or [fe80::1]:13565", what, text, found));
}

std::string numeric_host(const addrinfo& address) {
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(address.ai_addr, address.ai_addrlen, text.data(), text.size(), nullptr, 0,
              NI_NUMERICHOST);
  return text.data();
}

}  // namespace

Endpoint parse_endpoint(std::string_view text, std::string_view what) {
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    throw unreadable_endpoint(what, text, fmt::format("leave {} out", text.substr(0, scheme + 3)));
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) {
    throw unreadable_endpoint(what, text, "it has no port");
  }
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    throw unreadable_endpoint(what, text, "an IPv6 address needs brackets around it");
  }
  if (host.empty()) throw unreadable_endpoint(what, text, "it has no host");
  if (host.find_first_of(" \t\r\n/") != std::string_view::npos) {
    throw unreadable_endpoint(what, text, "a host has no spaces or slashes");
  }

  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1)).value_or(0);
  if (port == 0) {
    throw unreadable_endpoint(what, text, "its port is not a number from 1 to 65535");
  }
  return {std::string(host), port};
}

std::string to_string(const Endpoint& endpoint) {
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
                 : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

void FreeAddresses::operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }

std::string own_host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string own_boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

bool is_own_address(const std::string& address) {
  try {
    const Addresses found = look_up({address, 0}, AI_NUMERICHOST);
    if (!found.list) return false;
    const FileDescriptor socket(::socket(found.list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return socket && bind(socket.get(), found.list->ai_addr, found.list->ai_addrlen) == 0;
  } catch (const UsageError&) {
    return false;  // it is not an address
  }
}

std::string loopback_address() {
  const std::string v4 = "127.0.0.1";
  return is_own_address(v4) ? v4 : "::1";
}

Endpoint listening_endpoint(const std::string& host, std::uint16_t port) {
  if (is_loopback(host)) return {host, port};
  if (host.empty() || host == "0.0.0.0" || host == "::") return {"", port};
  std::set<std::string> ipv4;
  std::set<std::string> ipv6;
  try {
    const Addresses found = look_up({host, port}, 0);
    for (const addrinfo* one = found.list.get(); one != nullptr; one = one->ai_next) {
      (one->ai_family == AF_INET ? ipv4 : ipv6).insert(numeric_host(*one));
    }
  } catch (const UsageError&) {
    return {"", port};
  }
  // Callers use the IPv4 address of a name that has both: ZeroMQ tries it first.
  const std::set<std::string>& addresses = ipv4.empty() ? ipv6 : ipv4;
  if (addresses.empty()) return {"", port};
  const std::string& address = *addresses.begin();
  if (host == "localhost") return {address, port};
  const bool is_certain = addresses.size() == 1 && !is_loopback(address) && is_own_address(address);
  return {is_certain ? address : "", port};
}

Addresses look_up(const Endpoint& endpoint, int flags) {
  Addresses found;
  const int code = resolve(endpoint, flags, found);
  if (code == 0) return found;
  found.error = gai_strerror(code);
  if (code != EAI_AGAIN && code != EAI_SYSTEM && code != EAI_MEMORY) {
    throw UsageError(
        fmt::format("{}: the host name '{}' is unknown ({}); give a name or an address that this "
                    "machine can look up",
                    to_string(endpoint), endpoint.host, found.error));
  }
  return found;
}

std::string look_up_problem(const Endpoint& endpoint) {
  Addresses found;
  const int code = resolve(endpoint, 0, found);
  return code == 0 ? "" : gai_strerror(code);
}

void await_host(const Endpoint& endpoint, const Deadline& deadline) {
  const Deadline unknown = Deadline::after(kUnknownHostTimeout);
  for (;;) {
    try {
      look_up(endpoint, 0);
      return;
    } catch (const UsageError&) {
      if (unknown.passed() || deadline.passed()) throw;
    }
    poll(nullptr, 0, std::min(kLookUpAgainMs, deadline.remaining_milliseconds()));
  }
}

}  // namespace syncopate
