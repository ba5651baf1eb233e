// Endpoints ("node3:13565", "10.0.0.7:40001", "[fe80::1]:40001") and host names: parsing, look-up,
// and the names and addresses of this machine. Used by every component that listens or connects.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "models/base/deadline.h"

struct addrinfo;

namespace syncopate {

struct Endpoint {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

// Parses an endpoint. Throws UsageError for an invalid text; `what` names its source in the
// message, such as "--rendezvous".
Endpoint parse_endpoint(std::string_view text, std::string_view what);
std::string to_string(const Endpoint& endpoint);  // with brackets around an IPv6 address

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept;
};

struct Addresses {
  std::unique_ptr<addrinfo, FreeAddresses> list;  // null if and only if `error` is set
  std::string error;  // why the look-up failed for now; a later attempt may succeed
};

// Returns the name of this machine as gethostname(2) gives it.
std::string own_host_name();

// Returns the boot id of the running kernel; empty if it cannot be read. All processes under one
// kernel have the same boot id, even in containers with different host names.
std::string own_boot_id();

// Returns whether this machine has the numeric address, so that a socket can be bound to it.
bool is_own_address(const std::string& address);

// Returns the address for a job with all tasks on this machine: 127.0.0.1, or ::1 if the machine
// has no IPv4.
std::string loopback_address();

// Returns the endpoint at which this machine should listen if other tasks connect to it as `host`.
// Usually this is the address of `host`. The returned host is "", which means every interface, if
// other tasks may use an address that this machine does not know. This is so if `host` is
// - a name with several addresses,
// - a name with a loopback address, such as the machine's own name in /etc/hosts,
// - a name without an address, or
// - an address that this machine does not have, because of address translation.
Endpoint listening_endpoint(const std::string& host, std::uint16_t port);

// Resolves an endpoint. `flags` are ai_flags of getaddrinfo(3). Throws UsageError for an unknown
// name.
Addresses look_up(const Endpoint& endpoint, int flags);

// Returns why the endpoint's host cannot be looked up now; "" if it can.
std::string look_up_problem(const Endpoint& endpoint);

// How long the look-up of an unknown host name is repeated. The name of a host that has just been
// started may become known seconds after other tasks first look it up.
constexpr std::chrono::seconds kUnknownHostTimeout(10);

// Waits until the host name can be resolved. Called before a connection is made in the background,
// where an unknown name could not be told from a task that is not running. Returns at once if the
// name is known or the name service is down. Throws UsageError for a name that stays unknown for
// kUnknownHostTimeout or until the deadline.
void await_host(const Endpoint& endpoint, const Deadline& deadline);

}  // namespace syncopate
