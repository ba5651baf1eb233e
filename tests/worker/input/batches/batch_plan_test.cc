#include "worker/input/batches/batch_plan.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

// Returns every shard's range of global batch `sequence`.
std::vector<Range> slices(std::int64_t size, std::int64_t batch, int shards,
                          std::int64_t sequence) {
  std::vector<Range> ranges;
  for (int shard = 0; shard < shards; ++shard) {
    const BatchPlan plan(
        size, {.batch_size = batch * shards, .drop_remainder = false, .shard = {shard, 1, shards}},
        {});
    const PlannedBatch planned = plan.batch(sequence);
    ranges.emplace_back(planned.begin, planned.end);
  }
  return ranges;
}

TEST(BatchPlan, CutsAWholeBatchIntoEqualSlices) {
  EXPECT_EQ(slices(6, 2, 2, 0), (std::vector<Range>{{0, 2}, {2, 4}}));
}

TEST(BatchPlan, CutsAShortBatchEvenly) {
  EXPECT_EQ(slices(6, 2, 2, 1), (std::vector<Range>{{4, 5}, {5, 6}}));
}

TEST(BatchPlan, LeavesTheLastShardsEmptyWhenSamplesRunOut) {
  EXPECT_EQ(slices(4, 1, 5, 0), (std::vector<Range>{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 4}}));
  EXPECT_EQ(slices(4, 2, 3, 0), (std::vector<Range>{{0, 2}, {2, 4}, {4, 4}}));
}

TEST(BatchPlan, CutsABatchThatTheReplicasDoNotDivide) {
  const auto range = [](InputShard shard, std::int64_t sequence) {
    const BatchPlan plan(18, {.batch_size = 10, .drop_remainder = false, .shard = shard}, {});
    const PlannedBatch planned = plan.batch(sequence);
    EXPECT_LE(planned.end - planned.begin, plan.most_samples());
    return Range{planned.begin, planned.end};
  };
  EXPECT_EQ(range({0, 1, 4}, 0), (Range{0, 3}));
  EXPECT_EQ(range({3, 1, 4}, 0), (Range{9, 10}));
  EXPECT_EQ(range({3, 1, 4}, 1), (Range{16, 18})) << "of 8 the last replica gets more than of 10";
  EXPECT_EQ(range({1, 2, 4}, 0), (Range{3, 9})) << "a task of two replicas";
  EXPECT_EQ(range({0, 4, 4}, 0), (Range{0, 10}));
}

TEST(BatchPlan, CountsTheSamplesOfAllShards) {
  const BatchPlan plan(6, {.batch_size = 4, .drop_remainder = false, .shard = {0, 1, 2}}, {});
  EXPECT_EQ(plan.batch(0).global_count, 4);
  EXPECT_EQ(plan.batch(1).global_count, 2);
  EXPECT_EQ(plan.batch(2).global_count, 4);
}

TEST(BatchPlan, DropsTheRemainderWhenAsked) {
  const BatchPlan plan(10, {.batch_size = 4}, {});
  EXPECT_EQ(plan.batches_per_epoch(), 2);
  EXPECT_EQ(plan.batch(1).position, (ps::DataPosition{0, 4}));
  EXPECT_EQ(plan.batch(2).position, (ps::DataPosition{1, 0}));
}

TEST(BatchPlan, StartsInTheMiddleOfAnEpoch) {
  const BatchPlan plan(10, {.batch_size = 4}, {3, 4});
  EXPECT_EQ(plan.batch(0).position, (ps::DataPosition{3, 4}));
  EXPECT_EQ(plan.batch(1).position, (ps::DataPosition{4, 0}));
}

TEST(BatchPlan, MovesToTheNextEpochWhenNoBatchIsLeft) {
  EXPECT_EQ(BatchPlan(10, {.batch_size = 4}, {3, 8}).batch(0).position, (ps::DataPosition{4, 0}));
  EXPECT_EQ(BatchPlan(10, {.batch_size = 4, .drop_remainder = false}, {3, 10}).batch(0).position,
            (ps::DataPosition{4, 0}));
}

TEST(BatchPlan, RefusesInvalidOptions) {
  EXPECT_THROW(BatchPlan(0, {.batch_size = 1}, {}), UsageError);
  EXPECT_THROW(BatchPlan(10, {.batch_size = 0}, {}), UsageError);
  EXPECT_THROW(BatchPlan(10, {.batch_size = -3}, {}), UsageError);
  EXPECT_THROW(BatchPlan(10, {.batch_size = 11}, {}), UsageError);
  EXPECT_THROW(BatchPlan(10, {.batch_size = 12, .shard = {0, 1, 2}}, {}), UsageError);
  EXPECT_THROW(BatchPlan(10, {.batch_size = 1, .threads = 0}, {}), UsageError);
  EXPECT_THROW(BatchPlan(10, {.batch_size = 1, .prefetch = -1}, {}), UsageError);
  EXPECT_THROW(BatchPlan(10, {.batch_size = 2, .shard = {2, 1, 2}}, {}), UsageError);
  EXPECT_THROW(BatchPlan(10, {.batch_size = 1}, {0, 11}), UsageError);
  EXPECT_THROW(BatchPlan(10, {.batch_size = 1}, {-1, 0}), UsageError);
}

TEST(BatchPlan, TakesAShortOnlyBatchWhenNothingIsDropped) {
  const BatchPlan plan(3, {.batch_size = 64, .drop_remainder = false}, {});
  EXPECT_EQ(plan.batches_per_epoch(), 1);
  EXPECT_EQ(plan.batch(0).end, 3);
}

}  // namespace
}  // namespace syncopate
