// The time that computing and sending take under the virtual clock. The time of a step is the
// measured computation plus the random delays of worker/train/service_time.h. Every task (worker or
// server) has one link to a network, which itself has no limits:
//
//   one message     b bytes from A to B occupy A's outgoing link for b / rate, in the order of
//                   sending, and then B's incoming link for b / rate as soon as it is free. The
//                   bytes arrive `delay` later. A message that waits for B does not delay messages
//                   of A to other tasks, so the links of many servers can be full at once
//   ring all-reduce 2 (n - 1) messages of b / n bytes one after the other, on every link at once:
//                   2 (n - 1) (delay + ceil(b / n) / rate). Source: Patarasu and Yuan 2009,
//                   "Bandwidth optimal all-reduce algorithms", section 3
//   a server's update
//                   an update from k gradients of b bytes takes k * b / (the server's rate). A
//                   server makes one update after the other
#pragma once

#include <cstdint>
#include <vector>

#include "bench/harness/fault_injection.h"
#include "bench/virtual_clock/event_queue.h"
#include "worker/train/service_time.h"

namespace syncopate::bench {

// Returns the time that `bytes` occupy a link: bytes / rate, rounded up to a nanosecond; 0 for a
// link without a limit.
VirtualTime time_on_link(const Link& link, std::int64_t bytes);
VirtualTime delay_of(const Link& link);
VirtualTime ring_all_reduce_time(const Link& link, int ranks, std::int64_t bytes);
// Returns the bytes that each rank sends and receives in a ring all-reduce.
std::int64_t ring_all_reduce_bytes(int ranks, std::int64_t bytes);

// Returns the time that a server takes to update `bytes` of values from `gradients` gradients.
// bytes_per_second: bytes of gradients that the server applies per second; 0 means no limit, and
// the time is 0.
VirtualTime update_time(double bytes_per_second, std::int64_t bytes, std::int64_t gradients);

// Simulates the links of workers and servers. From call to call of the same function, the argument
// `now` must not decrease. A copy of a Network has its own state.
class Network {
 public:
  Network(const Link& link, int workers, int servers);

  bool is_plain() const noexcept { return link_.is_plain(); }
  // Send `bytes` at time `now` and return the time at which all bytes have arrived. up(): a
  // gradient, from a worker to a server. down(): values, from a server to a worker.
  VirtualTime up(VirtualTime now, int worker, int server, std::int64_t bytes);
  VirtualTime down(VirtualTime now, int server, int worker, std::int64_t bytes);
  // Sends `bytes` from one worker to another at time `now` and returns the time at which all bytes
  // have arrived.
  VirtualTime across(VirtualTime now, int from, int to, std::int64_t bytes);

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

// Draws at random how long each step computes. A pause delays one step, the first step that begins
// when the pause begins or later. A copy of a ComputeDelays has its own state.
class ComputeDelays {
 public:
  // Uses the slow workers and pauses of `faults` and also the slow workers and pauses of
  // faults.service_time. Throws UsageError if a step would take no time, because the whole run
  // would then take no time.
  ComputeDelays(const FaultInjection& faults, std::uint64_t seed);

  // Returns how long the worker's `step`-th step takes if it begins at `now`: the sum of the
  // measured computation, the random delay, and the pauses that began by `now` and have not delayed
  // a step yet.
  VirtualTime take(int worker, std::int64_t step, VirtualTime now) {
    return take_part(worker, step, now, 1.0);
  }
  // Returns how long a part of the worker's step takes: as take(), but only the fraction `part` of
  // the computation and of the random delay counts.
  VirtualTime take_part(int worker, std::int64_t step, VirtualTime now, double part);
  // Returns whether the times of consecutive steps depend on each other.
  bool depends_on_order() const noexcept {
    return options_.kind == ServiceTimeKind::kBursts || options_.kind == ServiceTimeKind::kFile;
  }

 private:
  VirtualTime compute_of(int worker) const;

  ServiceTimeOptions options_;  // without pauses, which are in pauses_
  double compute_seconds_;
  std::vector<Pause> pauses_;  // pauses that have not delayed a step yet
};

}  // namespace syncopate::bench
