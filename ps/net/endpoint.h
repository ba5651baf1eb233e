// Endpoints ("node3:13565", "10.0.0.7:40001", "[fe80::1]:40001") and host names: parsing, look-up,
// and what this machine is called. Used by every component that listens or connects.
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

// Parses an endpoint; `what` names the text's source, such as "--rendezvous". Throws UsageError.
Endpoint parse_endpoint(std::string_view text, std::string_view what);
std::string to_string(const Endpoint& endpoint);  // with brackets around an IPv6 address

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept;
};

struct Addresses {
  std::unique_ptr<addrinfo, FreeAddresses> list;  // null only when `error` is set
  std::string error;  // why the look-up failed for now; a later attempt may succeed
};

// Returns the name of this machine as gethostname(2) gives it.
std::string own_host_name();

// Returns the boot id of the running kernel. The id is equal for all processes under one kernel,
// also in containers with different host names. Empty when it cannot be read.
std::string own_boot_id();

// Returns whether the numeric address is one of this machine's: a socket can be bound to it.
bool is_own_address(const std::string& address);

// Returns the address at which tasks of this machine alone meet: 127.0.0.1, or ::1 where the
// machine has no IPv4.
std::string loopback_address();

// Returns the endpoint to listen at when other tasks call this machine `host`: the address that
// `host` is or has. Returns host "", which means every interface, if other tasks may use an address
// that this machine does not see. This is so for a name with several addresses here, with a
// loopback address (a machine's own name in /etc/hosts) or with none, and for an address that is
// not this machine's (behind address translation).
Endpoint listening_endpoint(const std::string& host, std::uint16_t port);

// Resolves an endpoint. `flags` as for getaddrinfo(3). Throws UsageError for an unknown name.
Addresses look_up(const Endpoint& endpoint, int flags);

// Returns why the endpoint's host cannot be looked up now; "" if it can.
std::string look_up_problem(const Endpoint& endpoint);

// How long an unknown host name is looked up again: the name of a host that has just been started
// may appear seconds after other tasks call it.
constexpr std::chrono::seconds kUnknownHostTimeout(10);

// Waits until the host name can be resolved. Called before a connection is made in the background,
// where an unknown name would look like a task that is not running. Returns at once when the name
// is known or the name service is down. Throws UsageError for a name that stays unknown for
// kUnknownHostTimeout, or until the deadline.
void await_host(const Endpoint& endpoint, const Deadline& deadline);

}  // namespace syncopate
