// What a shard's values are made of, read from the order records of all its starts: what was undone
// because a server went back to a snapshot is left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "models/tensor/parameter_arena.h"
#include "ps/server/order_record.h"

namespace syncopate::test {

struct ShardHistory {
  std::map<BucketId, std::uint64_t> first_versions;  // before any push
  std::map<BucketId, std::vector<ps::OrderEntry>> applied;
  int starts = 0;
};

// Of the record that `--record FILE` asked for. Throws FileError.
ShardHistory history_of(const std::filesystem::path& file, int shard);

// Fails the test where a push is in the values twice, or an update is missing between others.
// `pushes_per_update`: 1, or under kSync the workers that keep step.
void expect_every_push_once(const ShardHistory& history, int pushes_per_update);

}  // namespace syncopate::test
