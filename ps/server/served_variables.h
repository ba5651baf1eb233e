// What a server serves once the job is declared: its shard, and the mapping between the buckets of
// the shard and the buckets of the job.
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
  std::vector<int> job_bucket;  // by bucket of the shard: the bucket of the job
  // shard_bucket[b] is the number that bucket b of the job has in the shard; -1 if another shard
  // has this bucket.
  std::vector<int> shard_bucket;
  std::shared_ptr<Shard> shard;
};

// Builds the shard of server `index`; its values are zero. Throws UsageError for an invalid
// declaration. (The declaration comes over the network, so it is checked.)
std::shared_ptr<ServedVariables> make_served_variables(wire::DeclarationT declaration, int index);

// Returns the consistency rule of a declaration. Throws UsageError for an unknown one.
ConsistencyOptions consistency_options(const wire::DeclarationT& declaration);
// Returns the optimizer of a declaration. Shards have this optimizer; if workers push
// displacements, the workers have it. Throws UsageError if its constants are not complete.
OptimizerOptions optimizer_options(const wire::DeclarationT& declaration);

// ServedSnapshot is one shard's part of a snapshot.
struct ServedSnapshot {
  std::uint64_t number = 0;
  std::vector<WorkerClock> entries;
  ShardSnapshot state;
  std::vector<float> running_statistics;  // set on shard 0: the average over workers
};

}  // namespace syncopate::ps
