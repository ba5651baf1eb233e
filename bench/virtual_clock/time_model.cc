#include "bench/virtual_clock/time_model.h"

#include <algorithm>
#include <cmath>

#include "models/base/errors.h"

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

VirtualTime update_time(double bytes_per_second, std::int64_t bytes, std::int64_t gradients) {
  if (bytes_per_second <= 0.0) return VirtualTime(0);
  return virtual_time(static_cast<double>(gradients) * static_cast<double>(bytes) /
                      bytes_per_second);
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

VirtualTime Network::across(VirtualTime now, int from, int to, std::int64_t bytes) {
  return send(now, workers_[static_cast<std::size_t>(from)], workers_[static_cast<std::size_t>(to)],
              bytes);
}

VirtualTime Network::send(VirtualTime now, Ends& from, Ends& to, std::int64_t bytes) const {
  const VirtualTime time = time_on_link(link_, bytes);
  const VirtualTime leaves = std::max(now, from.out_free);
  from.out_free = leaves + time;
  // A busy receiver delays messages to itself, not the sender's next message to another task.
  to.in_free = std::max(leaves, to.in_free) + time;
  return to.in_free + delay_of(link_);
}

ComputeDelays::ComputeDelays(const FaultInjection& faults, std::uint64_t seed)
    : options_(faults.service_time),
      compute_seconds_(faults.compute_seconds),
      pauses_(faults.service_time.pauses) {
  const bool draws = options_.kind != ServiceTimeKind::kNone && options_.mean_milliseconds > 0.0;
  if (!draws && !(compute_seconds_ > 0.0)) {
    throw UsageError(
        "the virtual clock needs the compute delay of a step; give --service-time, such as "
        "--service-time exponential:5");
  }
  options_.seed = seed;
  options_.pauses.clear();
  options_.slow.insert(options_.slow.end(), faults.slow.begin(), faults.slow.end());
  pauses_.insert(pauses_.end(), faults.pauses.begin(), faults.pauses.end());
}

VirtualTime ComputeDelays::compute_of(int worker) const {
  double seconds = compute_seconds_;
  for (const Slowness& slow : options_.slow) {
    if (slow.worker == worker) seconds *= slow.factor;
  }
  return virtual_time(seconds);
}

VirtualTime ComputeDelays::take_part(int worker, std::int64_t step, VirtualTime now, double part) {
  VirtualTime time = compute_of(worker) + service_time(options_, worker, step);
  if (part != 1.0) time = virtual_time(part * seconds_of(time));
  std::erase_if(pauses_, [&](const Pause& pause) {
    if (pause.worker != worker || pause.at_seconds > seconds_of(now)) return false;
    time += virtual_time(pause.for_seconds);
    return true;
  });
  return time;
}

}  // namespace syncopate::bench
