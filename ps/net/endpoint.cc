#include "ps/net/endpoint.h"

#include <charconv>

#include "models/base/errors.h"

namespace syncopate {
namespace {

UsageError unreadable(std::string_view what, std::string_view text, std::string_view found) {
  return UsageError(std::string(what) + " '" + std::string(text) + "': " + std::string(found) +
                    "; expected HOST:PORT, as in node3:13565 or [fe80::1]:13565");
}

}  // namespace

Endpoint parse_endpoint(std::string_view text, std::string_view what) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) {
    throw unreadable(what, text, "it has no port");
  }
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    throw unreadable(what, text, "an IPv6 address wants brackets around it");
  }
  if (host.empty()) throw unreadable(what, text, "it has no host");
  if (host.find_first_of(" \t\r\n/") != std::string_view::npos) {
    throw unreadable(what, text, "a host has no spaces or slashes");
  }

  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) {
    throw unreadable(what, text, "its port is not a number from 1 to 65535");
  }
  return {std::string(host), port};
}

std::string to_string(const Endpoint& endpoint) {
  const std::string port = ":" + std::to_string(endpoint.port);
  if (endpoint.host.find(':') == std::string::npos) return endpoint.host + port;
  return "[" + endpoint.host + "]" + port;
}

}  // namespace syncopate
