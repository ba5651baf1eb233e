// Consistent copies: a cut has exactly the pushes that it names, and holds up nobody longer.
#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/ps/one_value.h"

namespace syncopate::ps {
namespace {

constexpr ConsistencyOptions kAsync{.consistency = Consistency::kAsync};

ShardState copy_for(const Shard& shard) { return shard.state(); }

TEST(ACut, HasExactlyThePushesUpToItsEntries) {
  OneValue one(kAsync, 2);
  one.push(0, 1, 1);
  EXPECT_EQ(one.shard().freeze(), (std::vector<CutEntry>{{0, 1, 1}, {1, 1, 0}}));
  one.push(0, 2, 2, {.gradient = 10.0F});
  one.push(1, 1, 1, {.gradient = 100.0F});
  one.log();
  EXPECT_EQ(one.value(), -1.0F) << "they wait";

  ShardState copy = copy_for(one.shard());
  one.shard().cut(std::vector<CutEntry>{{0, 1, 3}, {1, 1, 0}}, copy);
  one.work();
  EXPECT_EQ(one.log(), "applied 0:2 v3, answered 0:2 v3 =-11");
  one.push(0, 3, 3, {.gradient = 1000.0F});
  EXPECT_EQ(one.log(),
            "applied 0:3 v4, answered 0:3 v4 =-1011, cut v4, applied 1:1 v5 s3, "
            "answered 1:1 v5 =-1111");
  EXPECT_EQ(copy.values.f32()[0], -1011.0F);
  EXPECT_EQ(copy.buckets[0].version, 4U);
  EXPECT_EQ(copy.buckets[0].workers, (std::vector<CutEntry>{{0, 1, 3}, {1, 1, 0}}));
  EXPECT_EQ(one.value(), -1111.0F);
}

TEST(ACut, AnswersReadersWhileItWaits) {
  OneValue one(kAsync, 2);
  one.shard().freeze();
  one.read(0);
  EXPECT_EQ(one.log(), "answered 0:0 v1 =0");
}

TEST(ACut, DoesNotWaitForAWorkerThatHasLeft) {
  OneValue one(kAsync, 2);
  one.shard().freeze();
  ShardState copy = copy_for(one.shard());
  one.shard().cut(std::vector<CutEntry>{{0, 1, 0}, {1, 1, 4}}, copy);
  one.work();
  EXPECT_EQ(one.log(), "");
  one.shard().leave(1, 1);
  one.work();
  EXPECT_EQ(one.log(), "cut v1");
}

TEST(ACut, HoldsBackAnIncarnationThatItDoesNotName) {
  OneValue one(kAsync, 1);
  one.shard().freeze();
  ShardState copy = copy_for(one.shard());
  one.shard().join(1, 1, 0);
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(), "");
  one.shard().cut(std::vector<CutEntry>{{0, 1, 0}}, copy);
  one.work();
  EXPECT_EQ(one.log(), "cut v1, applied 1:1 v2, answered 1:1 v2 =-1");
  EXPECT_EQ(copy.values.f32()[0], 0.0F);
}

TEST(ACut, OfSynchronousWorkersDoesNotWaitForThoseItHoldsBack) {
  OneValue one({.backup_workers = 1}, 3);
  one.shard().freeze();
  ShardState copy = copy_for(one.shard());
  one.push(2, 1, 1);
  // Elsewhere the step's update has begun with workers 0 and 1.
  one.shard().join(3, 1, 0);
  one.shard().cut(std::vector<CutEntry>{{0, 1, 1}, {1, 1, 1}, {2, 1, 0}}, copy);
  one.push(0, 1, 1, {.wants_values = false});
  one.push(1, 1, 1, {.wants_values = false});
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 1:1 v2, cut v2, dropped 2:1, answered 2:1 v2 =-2");
}

TEST(AThaw, LetsGoWhatACutWouldHaveWaitedFor) {
  OneValue one(kAsync, 2);
  one.shard().freeze();
  ShardState copy = copy_for(one.shard());
  one.shard().cut(std::vector<CutEntry>{{0, 1, 0}, {1, 1, 9}}, copy);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "");
  one.shard().thaw();
  one.work();
  EXPECT_EQ(one.log(), "applied 0:1 v2, answered 0:1 v2 =-1");
}

TEST(AFreeze, LetsEveryBucketCatchUpWithTheFurthest) {
  const float gradient = 1.0F;
  Shard shard(ArenaLayout({{.name = "values", .shape = {2}}}), {{0, 1}, {1, 2}}, make_optimizer({}),
              kAsync, make_host_tensor({2}, DType::kF32));
  shard.join(0, 1, 0);
  std::vector<ShardEvent> events;
  const auto push = [&](BucketId bucket, std::uint64_t sequence) {
    shard.push({.id = {0, 1, sequence},
                .bucket = bucket,
                .version = sequence,
                .learning_rate = 1.0F,
                .gradient = {Codec::kF32, 1, std::as_bytes(std::span(&gradient, 1))},
                .values = {}});
    shard.work(bucket, events);
  };
  push(1, 1);
  EXPECT_EQ(shard.freeze(), (std::vector<CutEntry>{{0, 1, 1}}));
  push(0, 1);
  push(0, 2);
  push(1, 2);
  EXPECT_EQ(shard.view(0).version, 2U);
  EXPECT_EQ(shard.view(1).version, 2U);
}

TEST(ACut, CopiesSlotsOnlyWhereThereIsRoomForThem) {
  Shard shard(ArenaLayout({{.name = "value", .shape = {1}}}), {{0, 1}},
              make_optimizer({.name = "momentum"}), kAsync, make_host_tensor({1}, DType::kF32));
  shard.slots()[0].f32()[0] = 3.0F;
  std::vector<ShardEvent> events;
  ShardState with = shard.state();
  with.slots[0].f32()[0] = 0.0F;
  shard.cut(shard.freeze(), with);
  shard.work(0, events);
  EXPECT_EQ(with.slots[0].f32()[0], 3.0F);

  ShardState without = shard.state();
  without.slots.clear();
  shard.cut(shard.freeze(), without);
  shard.work(0, events);
  EXPECT_EQ(events.size(), 2U);

  ShardState wrong = shard.state();
  wrong.values = make_host_tensor({2}, DType::kF32);
  EXPECT_THROW(shard.cut({}, wrong), ShapeError);
  EXPECT_THROW(shard.restore(wrong), ShapeError);
  EXPECT_THROW(shard.restore(without), ShapeError);
}

}  // namespace
}  // namespace syncopate::ps
