// Tests snapshots: a snapshot contains exactly the pushes that its clocks name, and delays no later
// push longer than necessary.
#include <gtest/gtest.h>

#include <memory>

#include "models/base/errors.h"
#include "models/optim/outer_rule.h"
#include "tests/ps/shard/one_value.h"

namespace syncopate::ps {
namespace {

std::shared_ptr<ShardSnapshot> copy_for(const Shard& shard) {
  return std::make_shared<ShardSnapshot>(shard.snapshot());
}

TEST(Snapshot, HasExactlyThePushesUpToItsClocks) {
  OneValue one(kAsync, 2);
  one.push(0, 1, 1);
  EXPECT_EQ(one.shard().freeze(1), (std::vector<WorkerClock>{{0, 1, 1}, {1, 1, 0}}));
  one.push(0, 2, 2, {.gradient = 10.0F});
  one.push(1, 1, 1, {.gradient = 100.0F});
  one.log();
  EXPECT_EQ(one.value(), -1.0F) << "the pushes wait";

  const auto copy = copy_for(one.shard());
  one.shard().begin_snapshot(1, std::vector<WorkerClock>{{0, 1, 3}, {1, 1, 0}}, copy);
  one.work();
  EXPECT_EQ(one.log(), "applied 0:2 v3, answered 0:2 v3 =-11");
  one.push(0, 3, 3, {.gradient = 1000.0F});
  EXPECT_EQ(one.log(),
            "applied 0:3 v4, answered 0:3 v4 =-1011, snapshot v4, applied 1:1 v5 s3, "
            "answered 1:1 v5 =-1111");
  EXPECT_EQ(copy->values.f32()[0], -1011.0F);
  EXPECT_EQ(copy->buckets[0].version, 4U);
  EXPECT_EQ(copy->buckets[0].workers, (std::vector<WorkerClock>{{0, 1, 3}, {1, 1, 0}}));
  EXPECT_EQ(one.value(), -1111.0F);
}

TEST(Snapshot, AnswersReadsWhileItWaits) {
  OneValue one(kAsync, 2);
  one.shard().freeze(1);
  one.read(0);
  EXPECT_EQ(one.log(), "answered 0:0 v1 =0");
}

TEST(Snapshot, DoesNotWaitForAWorkerThatHasLeft) {
  OneValue one(kAsync, 2);
  one.shard().freeze(1);
  const auto copy = copy_for(one.shard());
  one.shard().begin_snapshot(1, std::vector<WorkerClock>{{0, 1, 0}, {1, 1, 4}}, copy);
  one.work();
  EXPECT_EQ(one.log(), "");
  one.shard().leave(1, 1);
  one.work();
  EXPECT_EQ(one.log(), "snapshot v1");
}

TEST(Snapshot, HoldsBackAnIncarnationWithoutAClock) {
  OneValue one(kAsync, 1);
  one.shard().freeze(1);
  const auto copy = copy_for(one.shard());
  one.shard().join(1, 1, 0);
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(), "");
  one.shard().begin_snapshot(1, std::vector<WorkerClock>{{0, 1, 0}}, copy);
  one.work();
  EXPECT_EQ(one.log(), "snapshot v1, applied 1:1 v2, answered 1:1 v2 =-1");
  EXPECT_EQ(copy->values.f32()[0], 0.0F);
}

// On another shard the worker's push has begun, so the snapshot's clocks include it.
TEST(Snapshot, HoldsBackAWorkerThatJoinsAfterTheFreeze) {
  OneValue one(kAsync, 1);
  one.shard().freeze(1);
  const auto copy = copy_for(one.shard());
  one.shard().join(1, 1, 0);
  one.shard().begin_snapshot(1, std::vector<WorkerClock>{{0, 1, 0}, {1, 1, 1}}, copy);
  one.push(1, 1, 1);
  EXPECT_EQ(one.log(), "snapshot v1, applied 1:1 v2, answered 1:1 v2 =-1");
  EXPECT_EQ(copy->values.f32()[0], 0.0F);
  EXPECT_EQ(copy->buckets[0].workers, (std::vector<WorkerClock>{{0, 1, 0}, {1, 1, 0}}));
}

TEST(Snapshot, HoldsBackAWorkerThatJoinsARestoredShardAfterTheFreeze) {
  OneValue one(kAsync, 2);
  one.push(0, 1, 1);
  one.push(1, 1, 2);
  one.shard().restore(one.shard().snapshot());
  one.shard().join(0, 1, 1);
  EXPECT_EQ(one.shard().freeze(1), (std::vector<WorkerClock>{{0, 1, 1}}))
      << "worker 1 has not joined since";
  one.log();
  const auto copy = copy_for(one.shard());
  one.shard().begin_snapshot(1, std::vector<WorkerClock>{{0, 1, 2}, {1, 1, 2}}, copy);
  one.shard().join(1, 1, 1);
  one.push(1, 2, 3);
  EXPECT_EQ(one.log(), "") << "push 2 of worker 0 is waited for";
  one.push(0, 2, 3);
  EXPECT_EQ(one.log(),
            "applied 0:2 v4, answered 0:2 v4 =-3, snapshot v4, applied 1:2 v5 s1, "
            "answered 1:2 v5 =-4");
  EXPECT_EQ(copy->values.f32()[0], -3.0F);
  EXPECT_EQ(copy->buckets[0].workers, (std::vector<WorkerClock>{{0, 1, 2}, {1, 1, 1}}));
}

TEST(Snapshot, UnderSyncDoesNotWaitForWorkersThatItHoldsBack) {
  OneValue one({.backup_workers = 1}, 3);
  one.shard().freeze(1);
  const auto copy = copy_for(one.shard());
  one.push(2, 1, 1);
  // The snapshot's clocks include push 1 of workers 0 and 1, because on another shard the update of
  // this step has begun with these two pushes.
  one.shard().join(3, 1, 0);
  one.shard().begin_snapshot(1, std::vector<WorkerClock>{{0, 1, 1}, {1, 1, 1}, {2, 1, 0}}, copy);
  one.push(0, 1, 1, {.wants_values = false});
  one.push(1, 1, 1, {.wants_values = false});
  EXPECT_EQ(one.log(),
            "applied 0:1 v2, applied 1:1 v2, snapshot v2, dropped 2:1, answered 2:1 v2 =-2");
}

TEST(Thaw, ReleasesThePushesThatTheSnapshotHeldBack) {
  OneValue one(kAsync, 2);
  one.shard().freeze(1);
  const auto copy = copy_for(one.shard());
  one.shard().begin_snapshot(1, std::vector<WorkerClock>{{0, 1, 0}, {1, 1, 9}}, copy);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "");
  one.shard().thaw();
  one.work();
  EXPECT_EQ(one.log(), "applied 0:1 v2, answered 0:1 v2 =-1");
}

TEST(Snapshot, ThatWasWithdrawnIsKeptAliveUntilItsCopyEnds) {
  OneValue one(kAsync, 1, 7.0F);
  auto first = copy_for(one.shard());
  const auto second = copy_for(one.shard());
  one.shard().begin_snapshot(1, one.shard().freeze(1), first);
  const auto piece = one.shard().claim(0);
  ASSERT_TRUE(piece);
  one.shard().thaw();
  one.shard().begin_snapshot(2, one.shard().freeze(2), second);
  const std::weak_ptr<ShardSnapshot> abandoned = first;
  first.reset();
  EXPECT_FALSE(abandoned.expired()) << "a piece still copies to the snapshot";
  std::vector<ShardEvent> events;
  one.shard().update(*piece);
  one.shard().take_events(events);
  EXPECT_TRUE(abandoned.expired());
  one.shard().work(0, events);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].token, 1U);
  EXPECT_EQ(events[1].token, 2U);
}

TEST(Snapshot, ThatWasWithdrawnEarlyDoesNotAffectTheNextOne) {
  OneValue one(kAsync, 2);
  const std::vector<WorkerClock> entries = one.shard().freeze(1);
  one.shard().thaw();
  const auto late = copy_for(one.shard());
  one.shard().begin_snapshot(1, entries, late);
  one.work();
  EXPECT_EQ(one.log(), "") << "the bucket is not held for snapshot 1";
  one.shard().freeze(2);
  one.shard().begin_snapshot(1, entries, late);
  one.push(0, 1, 1);
  EXPECT_EQ(one.log(), "") << "the push waits for snapshot 2";
  one.shard().begin_snapshot(2, entries, copy_for(one.shard()));
  one.work();
  EXPECT_EQ(one.log(), "snapshot v1, applied 0:1 v2, answered 0:1 v2 =-1");
}

TEST(Freeze, LetsEveryBucketReachTheFurthestClocks) {
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
  EXPECT_EQ(shard.freeze(1), (std::vector<WorkerClock>{{0, 1, 1}}));
  push(0, 1);
  push(0, 2);
  push(1, 2);
  EXPECT_EQ(shard.view(0).version, 2U);
  EXPECT_EQ(shard.view(1).version, 2U);
}

TEST(Snapshot, CopiesSlotsOnlyIfTheTargetHasSlots) {
  Shard shard(ArenaLayout({{.name = "value", .shape = {1}}}), {{0, 1}},
              make_optimizer({.name = "momentum"}), kAsync, make_host_tensor({1}, DType::kF32));
  shard.slots()[0].f32()[0] = 3.0F;
  std::vector<ShardEvent> events;
  const auto with = copy_for(shard);
  with->slots[0].f32()[0] = 0.0F;
  shard.begin_snapshot(1, shard.freeze(1), with);
  shard.work(0, events);
  EXPECT_EQ(with->slots[0].f32()[0], 3.0F);

  const auto without = copy_for(shard);
  without->slots.clear();
  shard.begin_snapshot(2, shard.freeze(2), without);
  shard.work(0, events);
  EXPECT_EQ(events.size(), 2U);

  const auto wrong = copy_for(shard);
  wrong->values = make_host_tensor({2}, DType::kF32);
  EXPECT_THROW(shard.begin_snapshot(2, {}, wrong), ShapeError);
  EXPECT_THROW(shard.restore(*wrong), ShapeError);
  EXPECT_THROW(shard.restore(*without), ShapeError);
}

// A server that is killed within the N displacements of an outer step continues them: their sum and
// the version are in its snapshot.
TEST(ShardSnapshotOfDelayedNesterov, ContinuesAtEveryPlaceWithinN) {
  constexpr std::uint64_t kPushes = 7;
  const OuterRuleOptions options{
      .learning_rate = 0.5, .momentum = 0.9, .nesterov = true, .momentum_every = 3};
  const auto make = [&] {
    return std::make_unique<Shard>(ArenaLayout({{.name = "value", .shape = {1}}}),
                                   std::vector<Bucket>{{0, 1}}, make_outer_rule(options),
                                   ConsistencyOptions{.consistency = Consistency::kAsync},
                                   make_host_tensor({1}, DType::kF32));
  };
  const auto push = [](Shard& shard, std::uint64_t sequence) {
    const float displacement = 1.0F / static_cast<float>(sequence);
    ASSERT_TRUE(shard.push({.id = {0, 1, sequence},
                            .learning_rate = 0.5F,
                            .gradient = {.codec = Codec::kF32,
                                         .num_elements = 1,
                                         .bytes = std::as_bytes(std::span(&displacement, 1))},
                            .values = {}}));
    std::vector<ShardEvent> events;
    shard.work(0, events);
  };
  const auto undisturbed = make();
  undisturbed->join(0, 1, 0);
  for (std::uint64_t sequence = 1; sequence <= kPushes; ++sequence) push(*undisturbed, sequence);
  for (std::uint64_t killed_after = 1; killed_after < kPushes; ++killed_after) {
    const auto before = make();
    before->join(0, 1, 0);
    for (std::uint64_t sequence = 1; sequence <= killed_after; ++sequence) push(*before, sequence);
    const auto after = make();
    after->restore(before->snapshot());
    after->join(0, 1, killed_after);
    for (std::uint64_t sequence = killed_after + 1; sequence <= kPushes; ++sequence) {
      push(*after, sequence);
    }
    EXPECT_EQ(after->view(0).values[0], undisturbed->view(0).values[0]) << killed_after;
  }
}

}  // namespace
}  // namespace syncopate::ps
