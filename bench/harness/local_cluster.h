// Runs the processes of a RankGroup as the tasks of a training job on this machine.
#pragma once

#include <memory>

#include "bench/harness/rank_group.h"
#include "strategies/cluster/membership.h"

namespace syncopate::bench {

// Joins this process to a cluster of all ranks of the group. Every rank of the group calls this
// function and becomes the task with its rank, with one replica. Throws what join_cluster() throws.
std::unique_ptr<Membership> join_local_cluster(RankGroup& group);

}  // namespace syncopate::bench
