// Tests --strategy one-device: restoring snapshots, and its share of the input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "models/base/errors.h"
#include "strategies/strategy.h"
#include "tests/strategies/small_training.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using test::copy_of;
using test::kBatch;
using test::same_blocks;
using test::small_batch;
using test::small_network;

class OneDeviceStrategy : public testing::Test {
 protected:
  std::unique_ptr<Strategy> make(const std::string& optimizer) const {
    StrategyOptions options;
    options.seed = 7;
    options.batch_size_per_replica = kBatch;
    options.bucket_bytes = 256;
    options.optimizer.name = optimizer;
    return make_strategy(options, graph_);
  }

  void train(Strategy& strategy, std::int64_t first_step, std::int64_t last_step) const {
    Replica& replica = strategy.replicas().front();
    for (std::int64_t step = first_step; step <= last_step; ++step) {
      replica.variables->pull({.learning_rate = 0.05F, .step = step});
      (void)replica.model->forward(
          batch_, [&](BucketId bucket) { replica.variables->wait_values(bucket); });
      replica.model->backward([&](BucketId bucket) { replica.variables->push(bucket, {}); });
      replica.variables->commit();
    }
  }

  Graph graph_ = small_network();
  Batch batch_ = small_batch();
};

TEST_F(OneDeviceStrategy, ContinuesFromASnapshotBitForBit) {
  const auto uninterrupted = make("adam");
  train(*uninterrupted, 1, 3);
  const Snapshot saved = copy_of(uninterrupted->snapshot());
  train(*uninterrupted, 4, 6);
  EXPECT_FALSE(same_blocks(saved, uninterrupted->snapshot()));

  const auto resumed = make("adam");
  train(*resumed, 1, 1);  // makes working copies of values that restore() replaces
  resumed->restore(saved);
  train(*resumed, 4, 6);
  EXPECT_TRUE(same_blocks(resumed->snapshot(), uninterrupted->snapshot()));
}

TEST_F(OneDeviceStrategy, ChangesNothingWhenASnapshotDoesNotFit) {
  const auto strategy = make("adam");
  train(*strategy, 1, 1);
  const Snapshot before = copy_of(strategy->snapshot());
  const auto other = make("adam");
  train(*other, 1, 2);

  Snapshot short_state = copy_of(other->snapshot());
  short_state.state = make_host_tensor({1}, DType::kF32);
  EXPECT_THROW(strategy->restore(short_state), ShapeError);
  Snapshot one_slot = copy_of(other->snapshot());
  one_slot.slots.pop_back();
  EXPECT_THROW(strategy->restore(one_slot), ShapeError);
  Snapshot swapped_slots = copy_of(other->snapshot());
  std::swap(swapped_slots.slots[0], swapped_slots.slots[1]);
  EXPECT_THROW(strategy->restore(swapped_slots), ShapeError);
  EXPECT_TRUE(same_blocks(before, strategy->snapshot()));
}

TEST_F(OneDeviceStrategy, HasOneReplicaThatTrainsTheWholeInput) {
  const auto strategy = make("sgd");
  EXPECT_EQ(strategy->replicas().size(), 1U);
  EXPECT_EQ(strategy->replicas_in_sync(), 1);
  EXPECT_EQ(strategy->input_shard().first, 0);
  EXPECT_EQ(strategy->input_shard().total, 1);
  EXPECT_TRUE(strategy->is_chief());
}

std::string refusal_of(const StrategyOptions& options) {
  return message_of<UsageError>([&] { (void)make_strategy(options, small_network()); });
}

TEST(MakeStrategy, RefusesACollectiveThatTheStrategyDoesNotTake) {
  EXPECT_TRUE(contains(refusal_of({.name = kOneDevice, .collective = "ring"}),
                       "--collective ring: --strategy one-device in a job of 1 task takes auto, "
                       "local; omit --collective"));
  EXPECT_TRUE(contains(refusal_of({.name = kMirrored, .collective = "mpi"}), "local, nccl"));
  EXPECT_TRUE(
      contains(refusal_of({.name = "pipeline", .collective = "ring"}), "takes auto, local"));
  EXPECT_TRUE(contains(refusal_of({.name = kMirrored, .collective = ""}), "local, nccl"));
}

TEST(MakeStrategy, TakesRingBetweenTheTasksOfAPipelineOnly) {
  const StrategyRow& pipeline = *find_strategy("pipeline");
  EXPECT_TRUE(pipeline.takes_collective("local", 1));
  EXPECT_TRUE(pipeline.takes_collective("ring", 2));
  EXPECT_TRUE(pipeline.takes_collective("auto", 2));
  EXPECT_FALSE(pipeline.takes_collective("local", 2));
}

TEST(MakeStrategy, RefusesANumberOfReplicasThatTheStrategyDoesNotHave) {
  EXPECT_TRUE(contains(refusal_of({.name = kOneDevice, .replicas = 2}),
                       "--replicas 2: --strategy one-device has one replica"));
  EXPECT_TRUE(contains(refusal_of({.name = "pipeline", .replicas = 3}),
                       "--replicas 3: --strategy pipeline has one replica"));
  EXPECT_TRUE(
      contains(refusal_of({.name = "parameter-server", .replicas = 2}), "start more workers"));
  EXPECT_TRUE(contains(refusal_of({.name = kMirrored, .replicas = 0}), "expected at least 1"));
}

TEST(MakeStrategy, ListsTheKnownStrategiesWhenTheNameIsUnknown) {
  StrategyOptions options;
  options.name = "mirored";
  EXPECT_TRUE(
      contains(message_of<UsageError>([&] { (void)make_strategy(options, small_network()); }),
               "one-device"));
}

}  // namespace
}  // namespace syncopate
