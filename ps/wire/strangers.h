// Counts messages that are none of ours, and says so in the log once per peer.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace syncopate::ps::wire {

// One thread only.
class Strangers {
 public:
  // `peer`: a routing id, of any bytes, or an endpoint.
  void count(const std::string& peer, const std::string& trouble);
  std::int64_t messages() const noexcept { return messages_; }

 private:
  std::int64_t messages_ = 0;
  std::set<std::string> named_;
};

}  // namespace syncopate::ps::wire
