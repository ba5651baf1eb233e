#include "worker/train/step_profile.h"

#include "models/graph/fused_groups.h"
#include "models/graph/program_plan.h"

namespace syncopate {

StepProfile::StepProfile(const Graph& graph, const ArenaLayout& layout,
                         const std::vector<Bucket>& buckets, int micro_batches)
    : positions_(buckets.size()), micro_batches_(micro_batches) {
  const std::vector<FusedGroup> groups = match_groups(graph, /*fuse=*/false);
  const BucketSchedule schedule = schedule_buckets(graph, groups, layout, buckets);
  double before = 0.0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const BucketId bucket : schedule.first_used_by[i]) {
      positions_[static_cast<std::size_t>(bucket)] = before;
    }
    const Node& node = graph.nodes[static_cast<std::size_t>(groups[i].main)];
    before += static_cast<double>(multiply_adds_of(graph, node));
  }
  if (before == 0.0) return;  // a network without products, such as a batch norm alone
  for (double& position : positions_) position /= before;
}

StepProfile StepProfile::subset(const std::vector<BucketId>& buckets) const {
  StepProfile subset(buckets.size());
  subset.micro_batches_ = micro_batches_;
  subset.completes_at_end_ = completes_at_end_;
  for (std::size_t b = 0; b < buckets.size(); ++b) subset.positions_[b] = position(buckets[b]);
  return subset;
}

}  // namespace syncopate
