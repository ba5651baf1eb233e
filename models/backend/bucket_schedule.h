// Before which group of a program a bucket's values must be there, and after which its gradients
// are complete.
#pragma once

#include <vector>

#include "models/graph/fused_groups.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate {

struct BucketSchedule {
  // Of each group, in the order in which they are needed.
  std::vector<std::vector<BucketId>> first_used_by;
  // Of each group, going back.
  std::vector<std::vector<BucketId>> completed_by;
};

// A branch may be computed in another order than its parameters stand in; buckets are handed out in
// theirs.
BucketSchedule schedule_buckets(const Graph& graph, const std::vector<FusedGroup>& groups,
                                const ArenaLayout& layout, const std::vector<Bucket>& buckets);

}  // namespace syncopate
