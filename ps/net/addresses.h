// Host names, this machine's and others', for those who listen and those who call.
#pragma once

#include <netdb.h>

#include <chrono>
#include <memory>
#include <string>

#include "models/base/deadline.h"
#include "ps/net/endpoint.h"

namespace syncopate {

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

struct Addresses {
  std::unique_ptr<addrinfo, FreeAddresses> list;  // never null but with a `trouble`
  std::string trouble;                            // a passing one: it is worth trying again
};

// This machine's own name for itself, as gethostname(2) has it.
std::string own_host_name();

// The same for all that run under one kernel, also in containers with host names of their own. "":
// not known.
std::string own_boot_id();

// Where to listen for those who call this machine `host`, at a port: at loopback alone where that
// is what they call, else at every interface. A name may well mean an address that others do not
// use.
Endpoint listening_endpoint(const std::string& host, std::uint16_t port);

// `flags` as for getaddrinfo(3). Throws UsageError for a name that nobody knows.
Addresses look_up(const Endpoint& endpoint, int flags);

// Names of hosts that have just been started appear seconds after those who call them.
constexpr std::chrono::seconds kUnknownHostPatience(10);

// Before something calls there in the background, where an unknown name would pass for a task that
// is not running. Returns at once where the name is known, or nobody can tell. Throws UsageError
// for one that nobody has known for kUnknownHostPatience, or until the deadline.
void await_host(const Endpoint& endpoint, const Deadline& deadline);

}  // namespace syncopate
