#include "models/backend/bucket_schedule.h"

#include <algorithm>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// Of a group's nodes only the main one has parameters.
const std::vector<int>& parameters_of(const Graph& graph, const FusedGroup& group) {
  return graph.nodes[static_cast<std::size_t>(group.main)].parameters;
}

bool overlaps(const ArenaLayout& layout, int parameter, const Bucket& bucket) {
  const std::int64_t begin = layout.offset(static_cast<std::size_t>(parameter));
  const std::int64_t end = begin + layout.size(static_cast<std::size_t>(parameter));
  return begin < bucket.end && end > bucket.begin;
}

}  // namespace

BucketSchedule schedule_buckets(const Graph& graph, const std::vector<FusedGroup>& groups,
                                const ArenaLayout& layout, const std::vector<Bucket>& buckets) {
  BucketSchedule schedule;
  schedule.first_used_by.resize(groups.size());
  schedule.completed_by.resize(groups.size());
  std::size_t first = groups.size();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (std::size_t i = groups.size(); i-- > 0;) {
      for (const int parameter : parameters_of(graph, groups[i])) {
        if (overlaps(layout, parameter, buckets[b])) first = std::min(first, i);
      }
    }
    check(first < groups.size(), "every bucket holds a parameter");
    // In the arena's order the first group of a bucket is the last to write its gradients.
    schedule.first_used_by[first].push_back(static_cast<BucketId>(b));
    schedule.completed_by[first].push_back(static_cast<BucketId>(b));
  }
  // Going back, buckets complete in their own order.
  for (std::vector<BucketId>& used : schedule.first_used_by) std::ranges::reverse(used);
  return schedule;
}

}  // namespace syncopate
