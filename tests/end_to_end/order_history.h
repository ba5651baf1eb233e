// Collects, from the order records of all incarnations of a shard, the pushes that are in the
// shard's values. Pushes that were undone because a server restored a snapshot are left out.
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
  int starts = 0;
};

// Returns the history of a shard from the record that `--record FILE` wrote. Throws FileError if
// the record cannot be read.
ShardHistory history_of(const std::filesystem::path& file, int shard);

// Fails the test if a push is in the shard's values twice, or if an update between others is
// missing. `pushes_per_update` is the number of synchronous workers under kSync, and 1 otherwise.
void expect_every_push_once(const ShardHistory& history, int pushes_per_update);

}  // namespace syncopate::test
