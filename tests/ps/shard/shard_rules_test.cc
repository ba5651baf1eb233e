// Tests each consistency rule, step by step on a shard of one value.
#include <gtest/gtest.h>

#include <vector>

#include "tests/ps/shard/one_value.h"

namespace syncopate::ps {
namespace {

constexpr ConsistencyOptions kSspOf1{.consistency = Consistency::kSsp, .max_staleness = 1};

TEST(SyncRule, AnswersAllWorkersWithOneUpdateAfterTheLastPush) {
  OneValue one({}, 2);
  one.push(1, 1, 1, {.gradient = 2.0F});
  EXPECT_EQ(one.log(), "");
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 1:1 v2, answered 0:1 v2 =-3, answered 1:1 v2 =-3");
}

TEST(SyncRule, AnswersAReadWithTheWorkersOwnPushes) {
  OneValue one({}, 2);
  one.push(0, 1, 1, {.wants_values = false});
  one.read(0);
  EXPECT_EQ(one.log(), "");
  one.read(1);
  EXPECT_EQ(one.log(), "answered 1:0 v1 =0");
  one.push(1, 1, 1, {.wants_values = false});
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 1:1 v2, answered 0:0 v2 =-2");
}

TEST(SyncRule, DropsALateGradientAndAnswersItWithTheCurrentValues) {
  OneValue one({.backup_workers = 1}, 3);
  one.push(2, 1, 1);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 2:1 v2, answered 0:1 v2 =-2, answered 2:1 v2 =-2");
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(), "dropped 1:1, answered 1:1 v2 =-2");
  one.push(1, 2, 2);
  one.push(2, 2, 2);
  EXPECT_EQ(one.log(), "applied 1:2 v3, applied 2:2 v3, answered 1:2 v3 =-4, answered 2:2 v3 =-4");
}

TEST(SyncRule, TakesOnlyAsManyPushesAsItWaitsFor) {
  OneValue one({.backup_workers = 1}, 3);
  one.shard().freeze(1);
  one.push(2, 1, 1);
  one.push(1, 1, 1);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "");
  one.shard().thaw();
  one.work();
  EXPECT_EQ(one.log(),
            "applied 1:1 v2, applied 2:1 v2, answered 1:1 v2 =-2, answered 2:1 v2 =-2, "
            "dropped 0:1, answered 0:1 v2 =-2");
}

TEST(SyncRule, ContinuesWhenTheLastAwaitedWorkerLeaves) {
  OneValue one({}, 3);
  one.push(0, 1, 1);
  one.push(1, 1, 1);
  one.shard().leave(1, 1);
  one.work();
  EXPECT_EQ(one.log(), "");
  one.shard().leave(2, 1);
  one.work();
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 1:1 v2, forgotten 1:1, answered 0:1 v2 =-2")
      << "the push of worker 1 is kept";
}

TEST(AsyncRule, AppliesEachPushAloneAndAnswersIt) {
  OneValue one(kAsync, 2);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "applied 0:1 v2, answered 0:1 v2 =-1");
  one.push(0, 2, 2, {.gradient = 2.0F, .learning_rate = 0.5F});
  EXPECT_EQ(one.log(), "applied 0:2 v3, answered 0:2 v3 =-2");
  one.push(1, 1, 1, {.gradient = 4.0F});
  EXPECT_EQ(one.log(), "applied 1:1 v4 s2, answered 1:1 v4 =-6");
}

TEST(AsyncRule, CountsTheStalenessOfEachWorker) {
  OneValue one(kAsync, 3);
  for (std::uint64_t version = 1; version <= 4; ++version) one.push(0, version, version);
  one.push(2, 1, 1);
  one.push(2, 2, 0);
  const auto staleness = one.shard().staleness();
  ASSERT_EQ(staleness.size(), 3U);
  EXPECT_EQ(staleness[0].counts(), std::vector<std::int64_t>{4});
  EXPECT_EQ(staleness[1].count(), 0);
  EXPECT_EQ(staleness[2].counts(), (std::vector<std::int64_t>{0, 0, 0, 0, 1}))
      << "a push of an unknown version has no staleness";
  EXPECT_EQ(staleness[2].max(), 4U);
}

TEST(InverseRule, DividesTheLearningRateByTheStalenessFrom2On) {
  OneValue one({.consistency = Consistency::kAsync, .staleness_rule = StalenessRule::kInverse}, 2);
  one.push(0, 1, 1);  // staleness 0 adds -1
  one.push(0, 2, 1);  // staleness 1 adds -1
  EXPECT_EQ(one.value(), -2.0F);
  one.push(0, 3, 1);  // staleness 2 adds -1/2
  EXPECT_EQ(one.value(), -2.5F);
  one.push(1, 1, 0);  // computed from an unknown version
  EXPECT_EQ(one.value(), -3.5F);
  one.push(1, 2, 1);  // staleness 4 adds -1/4
  EXPECT_EQ(one.value(), -3.75F);
}

TEST(SspRule, LetsAWorkerReadUntilItIsTooFarAhead) {
  OneValue one(kSspOf1, 2);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "applied 0:1 v2, answered 0:1 v2 =-1");
  one.push(0, 2, 2);
  EXPECT_EQ(one.log(), "applied 0:2 v3") << "clock 2, and the slowest is at 0";
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(), "applied 1:1 v4 s2, answered 0:2 v4 =-3, answered 1:1 v4 =-3");
}

TEST(SspRule, AnswersWhenTheSlowestLeaves) {
  OneValue one(kSspOf1, 2);
  one.push(0, 1, 1, {.wants_values = false});
  one.push(0, 2, 2);
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 0:2 v3");
  one.shard().leave(1, 1);
  one.work();
  EXPECT_EQ(one.log(), "answered 0:2 v3 =-2");
}

TEST(SspRule, DoesNotWaitForARestingWorker) {
  OneValue one(kSspOf1, 2);
  one.push(0, 1, 1, {.wants_values = false});
  one.push(0, 2, 2);
  one.shard().rest(1, 1, 0);
  one.work();
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 0:2 v3, answered 0:2 v3 =-2");
  one.push(0, 3, 3);
  EXPECT_EQ(one.log(), "applied 0:3 v4, answered 0:3 v4 =-3");
  one.push(1, 1, 1);
  one.push(1, 2, 5);
  one.push(0, 4, 4);
  EXPECT_EQ(one.log(),
            "applied 1:1 v5 s3, answered 1:1 v5 =-4, applied 1:2 v6, applied 0:4 v7 s2, "
            "answered 1:2 v7 =-6, answered 0:4 v7 =-6")
      << "it continued at clock 3, like worker 0";
}

TEST(SspRule, WaitsForPushesFromBeforeTheRest) {
  OneValue one({.consistency = Consistency::kSsp}, 2);
  one.shard().rest(1, 1, 1);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "applied 0:1 v2") << "worker 1's push has not arrived";
  one.push(1, 1, 1, {.wants_values = false});
  one.push(0, 2, 3);
  EXPECT_EQ(one.log(),
            "applied 1:1 v3 s1, answered 0:1 v3 =-2, applied 0:2 v4, answered 0:2 v4 =-3")
      << "this push did not end the rest";
}

TEST(SspRule, LevelsAJoiningWorkerWithTheSlowest) {
  OneValue one(kSspOf1, 1);
  for (std::uint64_t step = 1; step <= 5; ++step) one.push(0, step, step);
  one.shard().join(1, 1, 0);
  one.log();
  one.push(0, 6, 6);
  EXPECT_EQ(one.log(), "applied 0:6 v7, answered 0:6 v7 =-6");
  one.push(1, 1, 6);
  one.push(1, 2, 7);
  EXPECT_EQ(one.log(),
            "applied 1:1 v8 s1, answered 1:1 v8 =-7, applied 1:2 v9 s1, answered 1:2 v9 =-8");
  one.push(1, 3, 8);
  EXPECT_EQ(one.log(), "applied 1:3 v10 s1") << "clock 8, and the slowest is at 6";
}

TEST(SspRule, GivesAJoiningWorkerOneClockForAllBuckets) {
  const float gradient = 1.0F;
  std::vector<float> values(1);
  Shard shard(ArenaLayout({{.name = "values", .shape = {2}}}), {{0, 1}, {1, 2}}, make_optimizer({}),
              {.consistency = Consistency::kSsp}, make_host_tensor({2}, DType::kF32));
  const auto push = [&](WorkerId worker, BucketId bucket) {
    shard.push({.id = {worker, 1, 1},
                .bucket = bucket,
                .version = 1,
                .learning_rate = 1.0F,
                .gradient = {Codec::kF32, 1, std::as_bytes(std::span(&gradient, 1))},
                .values = values});
    std::vector<ShardEvent> events;
    shard.work(bucket, events);
    return events.size();
  };
  shard.join(0, 1, 0);
  EXPECT_EQ(push(0, 0), 2U);
  shard.join(1, 1, 0);
  // After its push, worker 1 is at clock 1 on bucket 0, like worker 0. If it had joined with a
  // clock per bucket, it would be ahead of worker 0 on bucket 0.
  EXPECT_EQ(push(1, 0), 2U) << "applied and answered";
  EXPECT_EQ(push(1, 1), 1U) << "worker 0 is at clock 0 there";
  EXPECT_EQ(push(0, 1), 3U) << "applied, and both workers are answered";
}

TEST(SspRule, WithBound0HoldsAWorkerUntilAllHaveFinishedTheStep) {
  OneValue one({.consistency = Consistency::kSsp}, 2);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "applied 0:1 v2");
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(), "applied 1:1 v3 s1, answered 0:1 v3 =-2, answered 1:1 v3 =-2");
}

}  // namespace
}  // namespace syncopate::ps
