// What a server serves once the job is declared: its shard, and where the shard's buckets stand in
// the job's.
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
  std::vector<int> job_bucket;    // of each bucket of the shard
  std::vector<int> shard_bucket;  // of each bucket of the job; -1: another shard's
  std::shared_ptr<Shard> shard;
};

// A hash of everything in it.
std::uint64_t fingerprint_of(const wire::DeclarationT& declaration);

// The shard of server `index`, values zero. Throws UsageError for a declaration that makes no
// sense: it came over the network.
std::shared_ptr<ServedVariables> make_served_variables(wire::DeclarationT declaration, int index);

// A copy that a cut made of one shard.
struct CutCopy {
  std::uint64_t cut = 0;
  std::vector<WorkerClock> entries;
  ShardSnapshot state;
  std::vector<float> running_statistics;  // shard 0: the average over workers
};

}  // namespace syncopate::ps
