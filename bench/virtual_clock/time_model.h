// How long computing and sending take under the virtual clock. A step has the measured computation
// and the random delays of worker/train/service_time.h. Every task, worker or server, has one link
// to a network that has no limits itself:
//
//   one message     b bytes from A to B occupy A's outgoing link for b / rate, in the order of
//                   sending, and then B's incoming link for b / rate as soon as it is free. They
//                   arrive `delay` later. A message that waits for B does not delay messages of A
//                   to other tasks, so the links of many servers can be full at once
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

// The time of b bytes on a link, b / rate, rounded up to a nanosecond; 0 on a link without a limit.
VirtualTime time_on_link(const Link& link, std::int64_t bytes);
VirtualTime delay_of(const Link& link);
VirtualTime ring_all_reduce_time(const Link& link, int ranks, std::int64_t bytes);
// Returns the bytes that each rank sends and receives in a ring all-reduce.
std::int64_t ring_all_reduce_bytes(int ranks, std::int64_t bytes);

// Algorithms that sum b bytes over n ranks. Only the ring is one of this program's collectives;
// `plan` computes the others for comparison. d: delay, t: time of b bytes on a link. Adding the
// numbers takes no time.
enum class AllReduce : std::uint8_t {
  kRing,
  // Recursive halving, then recursive doubling: 2 log2(n) d + 2 (n - 1) / n t. If n is no power of
  // two, ranks above the largest power p below n first send their bytes to another rank and at last
  // receive the sum, which adds 2 (d + t) to the time of p ranks. Source: Thakur, Rabenseifner,
  // Gropp 2005, "Optimization of collective communication operations in MPICH", section 4.5.
  kHalvingDoubling,
  // A reduction to one rank, then a broadcast, over trees of height h = ceil(log2 n). The time is
  // the shorter of two: of one binomial tree, 2 h (d + t), and of two binary trees that each carry
  // half of the bytes in blocks of the best size, 2 (t + 2 h d + sqrt(8 h d t)). Sources: Thakur et
  // al. 2005 for the binomial tree. Sanders, Speck, Traeff 2009, "Two-tree algorithms for full
  // bandwidth broadcast, reduction and scan": 2 h + 2 k steps for k blocks of each half; NCCL calls
  // them double binary trees.
  kTree,
  // Each machine of g ranks reduces and scatters with a ring inside the machine, rank i of each
  // machine sums its b / g bytes in a ring of all machines, and the machine gathers with a ring:
  // 2 (g - 1) (d' + t' / g) inside, 2 (m - 1) (d + t / g / m) between m = ceil(n / g) machines.
  // Source: Horovod's hierarchical all-reduce (HOROVOD_HIERARCHICAL_ALLREDUCE).
  kHierarchical,
};

struct AllReduceOptions {
  AllReduce algorithm = AllReduce::kRing;
  int ranks_per_machine = 1;  // for kHierarchical
  Link inside;                // the link of two ranks in one machine, for kHierarchical
};
VirtualTime all_reduce_time(const AllReduceOptions& options, const Link& link, int ranks,
                            std::int64_t bytes);

// Returns how long a server takes to update `bytes` of values from this many gradients, at a rate
// in bytes of gradients per second; 0 for a rate of 0, which stands for no limit.
VirtualTime update_time(double bytes_per_second, std::int64_t bytes, std::int64_t gradients);

// The links of workers and servers. Calls for one direction come in the order of `now`. A copy
// keeps the state at the time of copying.
class Network {
 public:
  Network(const Link& link, int workers, int servers);

  bool is_plain() const noexcept { return link_.is_plain(); }
  // Send `bytes` at time `now`, up (a gradient to a server) or down (values to a worker). Return
  // the time at which they arrive.
  VirtualTime up(VirtualTime now, int worker, int server, std::int64_t bytes);
  VirtualTime down(VirtualTime now, int server, int worker, std::int64_t bytes);
  // Sends from a worker to another one.
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

// Draws the compute time of each step. Each pause is used by the first step that it delays. A copy
// keeps the state at the time of copying.
class ComputeDelays {
 public:
  // Combines the slow workers and pauses of `faults` with the slow workers and pauses of its
  // service_time. Throws UsageError if a step would take no time, because then the whole run would
  // happen at once.
  ComputeDelays(const FaultInjection& faults, std::uint64_t seed);

  // Returns the time of the worker's `step`-th step, which begins now: the measured computation,
  // the random delay and the pauses that are due.
  VirtualTime take(int worker, std::int64_t step, VirtualTime now) {
    return take_part(worker, step, now, 1.0);
  }
  // As take(), for a part of the step's computation and random delay.
  VirtualTime take_part(int worker, std::int64_t step, VirtualTime now, double part);

 private:
  VirtualTime compute_of(int worker) const;

  ServiceTimeOptions options_;  // without pauses, which pauses_ holds
  double compute_seconds_;
  std::vector<Pause> pauses_;  // pauses that no step has used up yet
};

}  // namespace syncopate::bench
