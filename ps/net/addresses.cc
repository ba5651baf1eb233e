#include "ps/net/addresses.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>

#include "models/base/errors.h"
#include "ps/net/socket.h"

namespace syncopate {
namespace {

constexpr int kPauseMs = 200;

}  // namespace

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
  // The family that ZeroMQ calls first.
  for (const addrinfo* address = found.list.get(); address; address = address->ai_next) {
    if (address->ai_family == AF_INET) return {"127.0.0.1", port};
  }
  return {host, port};
}

Addresses look_up(const Endpoint& endpoint, int flags) {
  const addrinfo wanted{
      .ai_flags = flags | AI_NUMERICSERV, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* list = nullptr;
  const int code = getaddrinfo(endpoint.host.empty() ? nullptr : endpoint.host.c_str(),
                               std::to_string(endpoint.port).c_str(), &wanted, &list);
  Addresses found{std::unique_ptr<addrinfo, FreeAddresses>(list), ""};
  if (code == 0) return found;
  found.trouble = gai_strerror(code);
  if (code != EAI_AGAIN && code != EAI_SYSTEM && code != EAI_MEMORY) {
    throw UsageError(to_string(endpoint) + ": nobody knows the host '" + endpoint.host + "' (" +
                     found.trouble + "); give a name or an address that this machine can look up");
  }
  return found;
}

void await_host(const Endpoint& endpoint, const Deadline& deadline) {
  const Deadline unknown = Deadline::after(kUnknownHostPatience);
  for (;;) {
    try {
      look_up(endpoint, 0);
      return;
    } catch (const UsageError&) {
      if (unknown.passed() || deadline.passed()) throw;
    }
    poll(nullptr, 0, std::min(kPauseMs, deadline.remaining_milliseconds()));
  }
}

}  // namespace syncopate
