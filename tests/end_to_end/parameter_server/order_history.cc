#include "tests/end_to_end/parameter_server/order_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;
using Kind = ps::OrderEntry::Kind;

// Returns the files to which --record wrote a shard's pushes, by the incarnation of its server.
std::map<std::uint32_t, fs::path> files_of(const fs::path& file, int shard) {
  std::map<std::uint32_t, fs::path> files;
  const std::string first = fs::path(ps::order_record_path(file, shard, 1)).filename();
  for (const auto& entry : fs::directory_iterator(file.parent_path())) {
    const std::string name = entry.path().filename();
    if (name == first) files[1] = entry.path();
    if (name.starts_with(first + ".")) {
      files[static_cast<std::uint32_t>(std::stoul(name.substr(first.size() + 1)))] = entry.path();
    }
  }
  return files;
}

void roll_back(ShardHistory& history, BucketId bucket, std::uint64_t version) {
  std::vector<ps::OrderEntry>& applied = history.applied[bucket];
  const auto is_undone = [&](const auto& entry) { return entry.version_after > version; };
  std::erase_if(applied, is_undone);
  std::erase_if(history.batches[bucket], is_undone);
  if (applied.empty()) history.first_versions[bucket] = version;
}

// Adds the batches of an applied push. A displacement has all batches of its round.
void add_batches(ShardHistory& history, const ps::OrderEntry& push,
                 std::vector<ps::OrderEntry> round) {
  if (round.empty() && push.lanes > 0) round.push_back(push);
  for (ps::OrderEntry& step : round) {
    step.version_after = push.version_after;
    history.batches[push.bucket].push_back(step);
  }
}

}  // namespace

ShardHistory history_of(const fs::path& file, int shard) {
  ShardHistory history;
  for (const auto& [incarnation, path] : files_of(file, shard)) {
    ++history.starts;
    const ps::OrderRecord record = ps::read_order_record(path);
    // A server that was killed before it restored a snapshot recorded its first, empty shard only.
    const bool has_served = std::ranges::any_of(
        record.entries, [](const ps::OrderEntry& entry) { return entry.kind == Kind::kApplied; });
    if (!has_served) continue;
    std::vector<ps::OrderEntry> round;
    for (const ps::OrderEntry& entry : record.entries) {
      if (entry.kind == Kind::kInnerStep) {
        round.push_back(entry);
        continue;
      }
      if (entry.kind == Kind::kWritten) roll_back(history, entry.bucket, entry.version_after);
      if (entry.kind == Kind::kApplied) {
        history.applied[entry.bucket].push_back(entry);
        add_batches(history, entry, std::exchange(round, {}));
      }
      round.clear();
    }
  }
  return history;
}

std::vector<int> batches_in(const ShardHistory& shard_0) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, int> times;
  for (const auto& [bucket, batches] : shard_0.batches) {
    for (const ps::OrderEntry& entry : batches) {
      ++times[{entry.batch.epoch, entry.batch.begin, entry.batch.end}];
    }
  }
  std::vector<int> counts;
  for (const auto& [batch, count] : times) counts.push_back(count);
  return counts;
}

void expect_every_push_once(const ShardHistory& history, int pushes_per_update) {
  EXPECT_FALSE(history.applied.empty());
  for (const auto& [bucket, applied] : history.applied) {
    std::set<std::tuple<int, std::uint32_t, std::uint64_t>> pushes;
    std::map<std::uint64_t, int> updates;
    for (const ps::OrderEntry& entry : applied) {
      EXPECT_TRUE(pushes.insert({entry.worker, entry.incarnation, entry.sequence}).second)
          << "bucket " << bucket << ": push " << entry.sequence << " of worker " << entry.worker
          << ", incarnation " << entry.incarnation << ", is in the values twice";
      ++updates[entry.version_after];
    }
    const auto first = history.first_versions.find(bucket);
    std::uint64_t expected = first == history.first_versions.end() ? 1 : first->second;
    for (const auto& [version, count] : updates) {
      ASSERT_EQ(version, ++expected) << "bucket " << bucket;
      if (pushes_per_update == 0) continue;
      ASSERT_EQ(count, pushes_per_update) << "bucket " << bucket << ", version " << version;
    }
  }
}

}  // namespace syncopate::test
