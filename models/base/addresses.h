// Looking up host names, for those who listen and those who call.
#pragma once

#include <netdb.h>

#include <memory>
#include <string>

#include "models/base/endpoint.h"

namespace syncopate {

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

struct Addresses {
  std::unique_ptr<addrinfo, FreeAddresses> list;  // never null but with a `trouble`
  std::string trouble;                            // a passing one: it is worth trying again
};

// `flags` as for getaddrinfo(3). Throws UsageError for a name that nobody knows.
Addresses look_up(const Endpoint& endpoint, int flags);

}  // namespace syncopate
