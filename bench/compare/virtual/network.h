// What it costs to send bytes under the virtual clock. Every task, worker or server, has one link
// to a network that is itself without limits.
//
//   one message     b bytes from A to B hold A's link outwards for b / rate, first come first
//                   served, and B's link inwards as long, from then on or once it is free; they are
//                   there `delay` later. So one that waits for B does not hold up what A sends to
//                   others, and the links of many servers can all be full at once
//   ring all-reduce 2 (n - 1) messages of b / n bytes one after the other on every link at once:
//                   2 (n - 1) (delay + ceil(b / n) / rate). Source: Patarasu and Yuan 2009,
//                   "Bandwidth optimal all-reduce algorithms", section 3
#pragma once

#include <cstdint>
#include <vector>

#include "bench/compare/virtual/event_queue.h"
#include "bench/harness/fault_injection.h"

namespace syncopate::bench {

// b / rate, rounded up to a nanosecond; 0 on a link without limit.
VirtualTime time_on_link(const Link& link, std::int64_t bytes);
VirtualTime delay_of(const Link& link);
VirtualTime ring_all_reduce_time(const Link& link, int ranks, std::int64_t bytes);
// That each rank sends, and receives.
std::int64_t ring_all_reduce_bytes(int ranks, std::int64_t bytes);

// The links of workers and servers. Calls are in order of `now`, for each direction. Copying it
// remembers a moment.
class Network {
 public:
  Network(const Link& link, int workers, int servers);

  bool is_plain() const noexcept { return link_.is_plain(); }
  // When the message is there. Gradients go up, values down.
  VirtualTime up(VirtualTime now, int worker, int server, std::int64_t bytes);
  VirtualTime down(VirtualTime now, int server, int worker, std::int64_t bytes);

 private:
  struct Ends {
    VirtualTime out_free{0};
    VirtualTime in_free{0};
  };
  VirtualTime send(VirtualTime now, Ends& from, Ends& to, std::int64_t bytes) const;

  Link link_;
  std::vector<Ends> workers_;
  std::vector<Ends> servers_;
};

}  // namespace syncopate::bench
