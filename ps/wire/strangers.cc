#include "ps/wire/strangers.h"

#include <cctype>
#include <string_view>

#include "models/base/log.h"

namespace syncopate::ps::wire {
namespace {

// Strangers must not fill the log either.
constexpr std::size_t kMostNamed = 20;
constexpr std::size_t kLongestName = 64;

std::string readable(std::string_view peer) {
  std::string text;
  for (const char c : peer.substr(0, kLongestName)) {
    text += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  }
  return text;
}

}  // namespace

void Strangers::count(const std::string& peer, const std::string& trouble) {
  ++messages_;
  if (named_.size() >= kMostNamed || !named_.insert(peer).second) return;
  log(LogLevel::kWarning, "dropped a message from '" + readable(peer) + "': " + trouble +
                              "; does something else use this port?");
}

}  // namespace syncopate::ps::wire
