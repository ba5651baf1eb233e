#include "bench/virtual_clock/timed_buckets.h"

#include <algorithm>
#include <optional>

namespace syncopate::bench {

int TimedBuckets::servers() const noexcept {
  return has_servers() ? 1 + *std::ranges::max_element(owner) : 0;
}

std::vector<std::int64_t> TimedBuckets::bytes_by_server() const {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(servers()));
  for (std::size_t b = 0; b < owner.size(); ++b) {
    sums[static_cast<std::size_t>(owner[b])] += bytes[b];
  }
  return sums;
}

TimedBuckets served_buckets(const Graph& graph, const ps::Placement& placement,
                            ps::ValuesFormat format, int micro_batches) {
  TimedBuckets timed{.profile = {graph, graph.parameter_layout(), placement.buckets, micro_batches},
                     .bytes = {},
                     .owner = placement.owner};
  for (const Bucket& bucket : placement.buckets) {
    timed.bytes.push_back((bucket.end - bucket.begin) * ps::bytes_per_value(format));
  }
  return timed;
}

TimedBuckets reduced_buckets(const Graph& graph, std::int64_t bucket_bytes, int micro_batches) {
  const ArenaLayout layout = graph.parameter_layout();
  const std::vector<Bucket> buckets = plan_buckets(layout, bucket_bytes);
  TimedBuckets timed{.profile = {graph, layout, buckets, micro_batches}, .bytes = {}};
  for (const Bucket& bucket : buckets) {
    timed.bytes.push_back((bucket.end - bucket.begin) * static_cast<std::int64_t>(sizeof(float)));
  }
  return timed;
}

TimedBuckets joined(const TimedBuckets& buckets, std::int64_t most_per_server) {
  struct Group {
    int owner = 0;
    std::int64_t bytes = 0;
    BucketId first_used = 0;
  };
  const auto owners = static_cast<std::size_t>(std::max(1, buckets.servers()));
  std::vector<std::int64_t> all(owners);
  const auto owner_of = [&](BucketId b) { return buckets.has_servers() ? buckets.owner_of(b) : 0; };
  for (BucketId b = 0; b < buckets.count(); ++b) {
    all[static_cast<std::size_t>(owner_of(b))] += buckets.bytes_of(b);
  }
  std::vector<Group> groups;
  std::vector<std::optional<std::size_t>> open(owners);  // the last group of each server
  for (BucketId b = 0; b < buckets.count(); ++b) {
    const auto s = static_cast<std::size_t>(owner_of(b));
    if (!open[s] || groups[*open[s]].bytes * most_per_server >= all[s]) {
      open[s] = groups.size();
      groups.push_back({.owner = owner_of(b)});
    }
    groups[*open[s]].bytes += buckets.bytes_of(b);
    groups[*open[s]].first_used = b;
  }
  std::ranges::sort(groups, {}, &Group::first_used);
  TimedBuckets result;
  std::vector<BucketId> first_used;
  for (const Group& group : groups) {
    result.bytes.push_back(group.bytes);
    if (buckets.has_servers()) result.owner.push_back(group.owner);
    first_used.push_back(group.first_used);
  }
  result.profile = buckets.profile.subset(first_used);
  return result;
}

StepStart start_of_step(const TimedBuckets& buckets, std::span<const BucketTrip> trips,
                        VirtualTime begun, VirtualTime compute) {
  StepStart start{.at = begun, .last = buckets.first_used()};
  for (BucketId b = 0; b < buckets.count(); ++b) {
    const VirtualTime at = trips[static_cast<std::size_t>(b)].arrived - buckets.use(b, compute);
    if (at > start.at) start = {.at = at, .last = b};
  }
  return start;
}

void add_wait(WorkerAccount& account, const BucketTrip& trip, VirtualTime from, VirtualTime until) {
  const VirtualTime updated_from = std::max(trip.sent, trip.answered - trip.on_server);
  const auto overlap = [&](VirtualTime begin, VirtualTime end) {
    return std::max(VirtualTime(0), std::min(end, until) - std::max(begin, from));
  };
  const VirtualTime peers = overlap(trip.sent, updated_from);
  const VirtualTime servers = overlap(updated_from, trip.answered);
  account.peers += peers;
  account.servers += servers;
  account.communication += until - from - peers - servers;
}

}  // namespace syncopate::bench
