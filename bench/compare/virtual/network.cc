#include "bench/compare/virtual/network.h"

#include <algorithm>
#include <cmath>

namespace syncopate::bench {
namespace {

std::int64_t bytes_per_rank(std::int64_t bytes, int ranks) { return (bytes + ranks - 1) / ranks; }

}  // namespace

VirtualTime time_on_link(const Link& link, std::int64_t bytes) {
  if (link.bytes_per_second <= 0.0) return VirtualTime(0);
  const double seconds = static_cast<double>(bytes) / link.bytes_per_second;
  return VirtualTime(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
}

VirtualTime delay_of(const Link& link) { return virtual_time(link.delay_seconds); }

VirtualTime ring_all_reduce_time(const Link& link, int ranks, std::int64_t bytes) {
  const VirtualTime message = delay_of(link) + time_on_link(link, bytes_per_rank(bytes, ranks));
  return 2 * (ranks - 1) * message;
}

std::int64_t ring_all_reduce_bytes(int ranks, std::int64_t bytes) {
  return 2 * (ranks - 1) * bytes_per_rank(bytes, ranks);
}

Network::Network(const Link& link, int workers, int servers)
    : link_(link),
      workers_(static_cast<std::size_t>(workers)),
      servers_(static_cast<std::size_t>(servers)) {}

VirtualTime Network::up(VirtualTime now, int worker, int server, std::int64_t bytes) {
  return send(now, workers_[static_cast<std::size_t>(worker)],
              servers_[static_cast<std::size_t>(server)], bytes);
}

VirtualTime Network::down(VirtualTime now, int server, int worker, std::int64_t bytes) {
  return send(now, servers_[static_cast<std::size_t>(server)],
              workers_[static_cast<std::size_t>(worker)], bytes);
}

VirtualTime Network::send(VirtualTime now, Ends& from, Ends& to, std::int64_t bytes) const {
  const VirtualTime time = time_on_link(link_, bytes);
  const VirtualTime leaves = std::max(now, from.out_free);
  from.out_free = leaves + time;
  // A busy receiver delays messages to itself, not the sender's next message to another task.
  to.in_free = std::max(leaves, to.in_free) + time;
  return to.in_free + delay_of(link_);
}

}  // namespace syncopate::bench
