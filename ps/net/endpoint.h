// Where a task can be reached: "node3:13565", "10.0.0.7:40001", "[fe80::1]:40001".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syncopate {

struct Endpoint {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

// `what` names the source in the message: "--rendezvous". Throws UsageError.
Endpoint parse_endpoint(std::string_view text, std::string_view what);
std::string to_string(const Endpoint& endpoint);  // brackets around an IPv6 address

}  // namespace syncopate
