#include "models/base/addresses.h"

#include <sys/socket.h>

#include "models/base/errors.h"

namespace syncopate {

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

}  // namespace syncopate
