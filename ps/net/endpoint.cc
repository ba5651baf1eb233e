#include "ps/net/endpoint.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <fstream>

#include "models/base/errors.h"
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

}  // namespace

Endpoint parse_endpoint(std::string_view text, std::string_view what) {
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

  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) {
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

Endpoint listening_endpoint(const std::string& host, std::uint16_t port) {
  if (is_loopback(host)) return {host, port};
  if (host != "localhost") return {"", port};
  const Addresses found = look_up({host, port}, AI_PASSIVE);
  // ZeroMQ connects to the IPv4 address of a host name first, so listening at that one is enough.
  for (const addrinfo* address = found.list.get(); address; address = address->ai_next) {
    if (address->ai_family == AF_INET) return {"127.0.0.1", port};
  }
  return {host, port};
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
