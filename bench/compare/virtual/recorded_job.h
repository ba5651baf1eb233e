// What the order records of a job's shards say together. For replay.cc.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ps/server/order_record.h"
#include "ps/shard/placement.h"
#include "ps/wire/message.h"

namespace syncopate::bench {

struct RecordedPush {
  ps::SampleRange batch;
  int lanes = 0;                             // 0: its end was not recorded
  std::vector<std::uint64_t> versions_read;  // by bucket of the job; 0: not recorded
};

struct RecordedJob {
  struct Name {
    int worker = 0;
    std::uint32_t incarnation = 0;
    std::uint64_t sequence = 0;
    auto operator<=>(const Name&) const = default;
  };
  struct RecordedShard {
    std::filesystem::path file;
    ps::OrderRecord record;
    std::vector<int> job_bucket;  // of each bucket of the shard
  };

  ps::wire::DeclarationT declaration;
  ps::Placement placement;
  std::vector<RecordedShard> shards;  // by number
  std::map<Name, RecordedPush> pushes;

  // What the job's workers had to say alike: "--seed". Throws UsageError when they did not say it.
  const std::string& agreed(const std::string& flag) const;
};

// Throws as replay_order().
RecordedJob read_recorded_job(std::span<const std::filesystem::path> files);

}  // namespace syncopate::bench
