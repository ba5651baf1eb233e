#include "ps/coordinator/wire_conversion.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "models/base/errors.h"
#include "ps/net/endpoint.h"
#include "ps/net/process_probe.h"

namespace syncopate::ps {

wire::SampleRange to_wire(const SampleRange& range) {
  return {range.epoch, range.begin, range.end};
}

SampleRange from_wire(const wire::SampleRange& range) {
  return {range.epoch(), range.begin(), range.end()};
}

std::vector<wire::SampleRange> to_wire(std::span<const SampleRange> ranges) {
  std::vector<wire::SampleRange> converted;
  converted.reserve(ranges.size());
  for (const SampleRange& range : ranges) converted.push_back(to_wire(range));
  return converted;
}

std::vector<SampleRange> from_wire(std::span<const wire::SampleRange> ranges) {
  std::vector<SampleRange> converted;
  converted.reserve(ranges.size());
  for (const wire::SampleRange& range : ranges) converted.push_back(from_wire(range));
  return converted;
}

int to_wire(std::optional<StopKind> kind) { return kind ? static_cast<int>(*kind) : -1; }

std::optional<StopKind> stop_kind_from_wire(int number) {
  if (number < 0) return std::nullopt;
  if (static_cast<std::size_t>(number) >= kStopKinds) return StopKind::kRequest;
  return static_cast<StopKind>(number);
}

std::vector<int> to_wire(const StopCounts& stops) {
  return {stops.by_kind.begin(), stops.by_kind.end()};
}

StopCounts stop_counts_from_wire(std::span<const int> stops) {
  StopCounts counts;
  std::copy_n(stops.begin(), std::min(stops.size(), kStopKinds), counts.by_kind.begin());
  return counts;
}

std::unique_ptr<wire::StalenessT> to_wire(WorkerId worker, const StalenessHistogram& histogram) {
  const std::vector<std::int64_t>& counts = histogram.counts();
  const auto first = std::ranges::find_if(counts, [](std::int64_t count) { return count != 0; });
  auto staleness = std::make_unique<wire::StalenessT>();
  staleness->worker = worker;
  staleness->first = static_cast<int>(first - counts.begin());
  staleness->counts.assign(first, counts.end());
  staleness->sum = histogram.sum();
  staleness->max = histogram.max();
  return staleness;
}

StalenessHistogram from_wire(const wire::StalenessT& staleness) {
  constexpr auto kMost = static_cast<int>(StalenessHistogram::kMostRanges);
  const auto first = static_cast<std::size_t>(std::clamp(staleness.first, 0, kMost));
  std::vector<std::int64_t> counts(first);
  counts.insert(counts.end(), staleness.counts.begin(), staleness.counts.end());
  counts.resize(std::min(counts.size(), StalenessHistogram::kMostRanges));
  return StalenessHistogram::of(std::move(counts), staleness.sum, staleness.max);
}

wire::HelloT make_hello(int role, int index, int workers, int servers) {
  wire::HelloT hello;
  hello.role = static_cast<std::uint8_t>(role);
  hello.index = index;
  hello.world_size = workers;
  hello.num_servers = servers;
  hello.host = own_host_name();
  hello.pid = getpid();
  hello.process = process_name(getpid());
  return hello;
}

}  // namespace syncopate::ps
