// What a server serves once the job is declared: its shard, and the mapping between the shard's
// buckets and the job's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ps/shard/shard.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

struct ServedVariables {
  wire::DeclarationT declaration;
  std::uint64_t fingerprint = 0;
  std::vector<int> job_bucket;    // of the job, by bucket of the shard
  std::vector<int> shard_bucket;  // of the shard, by bucket of the job; -1: on another shard
  std::shared_ptr<Shard> shard;
};

// Builds the shard of server `index`; its values are zero. Throws UsageError for an invalid
// declaration, since it was received over the network.
std::shared_ptr<ServedVariables> make_served_variables(wire::DeclarationT declaration, int index);

// ServedSnapshot is one shard's part of a snapshot.
struct ServedSnapshot {
  std::uint64_t number = 0;
  std::vector<WorkerClock> entries;
  ShardSnapshot state;
  std::vector<float> running_statistics;  // on shard 0: the average over workers
};

}  // namespace syncopate::ps
