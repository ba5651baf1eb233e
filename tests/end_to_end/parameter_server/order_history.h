// Collects the pushes that are in a shard's values, from the files that all incarnations of its
// server wrote with --record. Pushes that were undone because a server restored a snapshot are left
// out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "models/tensor/parameter_arena.h"
#include "ps/server/order_record.h"

namespace syncopate::test {

struct ShardHistory {
  std::map<BucketId, std::uint64_t> first_versions;  // the versions of buckets before any push
  std::map<BucketId, std::vector<ps::OrderEntry>> applied;
  // One entry for each batch in the values, with the version that contains it.
  std::map<BucketId, std::vector<ps::OrderEntry>> batches;
  int starts = 0;
};

// Returns the history of a shard from the record that `--record FILE` wrote. Throws FileError if
// the record cannot be read.
ShardHistory history_of(const std::filesystem::path& file, int shard);

// Returns how often each batch is in the values of shard 0.
std::vector<int> batches_in(const ShardHistory& shard_0);

// Fails the test if the shard's values contain a push twice, or if an update is missing between two
// updates in the record. `pushes_per_update` is the number of synchronous workers under kSync, and
// 1 otherwise; 0: it is not checked.
void expect_every_push_once(const ShardHistory& history, int pushes_per_update);

}  // namespace syncopate::test
