#include "worker/run/run_memory.h"

#include <gtest/gtest.h>

#include "models/graph/graph.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

// A dense layer of 3 * 4 + 4 parameters, and one of 4 * 2 + 2, behind which the loss is.
Graph two_layers() {
  GraphBuilder builder("two");
  const NodeId x = builder.input({3}, {.mean = {0.0F, 0.0F, 0.0F}, .stddev = {1.0F, 1.0F, 1.0F}});
  const NodeId hidden = builder.relu(builder.dense(x, "first", 4));
  return builder.finish(builder.dense(hidden, "second", 2));
}

TrainOptions options_of(const std::string& strategy, std::int64_t batch) {
  TrainOptions options;
  options.strategy.name = strategy;
  options.strategy.batch_size_per_replica = batch;
  options.strategy.lanes = 3;
  options.strategy.optimizer.name = "adam";
  return options;
}

TEST(LeastMemory, IsTheSumOfValuesGradientsSlotsAndKeptActivations) {
  const RunMemory memory = least_memory(options_of("one-device", 10), two_layers());
  EXPECT_EQ(memory.values, 4 * 26);
  EXPECT_EQ(memory.gradients, 3 * 4 * 26) << "each lane has its own";
  EXPECT_EQ(memory.slots, 2 * 4 * 26);
  EXPECT_EQ(memory.activations, 4 * 10 * 4) << "the second layer's input; samples do not count";
  EXPECT_EQ(memory.all(), 4 * 26 * 6 + 160);
}

TEST(LeastMemory, IsTakenByEachReplicaAndWithServersWithoutSlots) {
  TrainOptions options = options_of("mirrored", 10);
  options.strategy.replicas = 2;
  EXPECT_EQ(least_memory(options, two_layers()).all(),
            4 * 26 + 2 * 4 * 26 + 2 * (3 * 4 * 26 + 160));
  EXPECT_EQ(least_memory(options_of("parameter-server", 10), two_layers()).slots, 0);
}

// Adam has two slots, and SlowMo one.
TEST(LeastMemory, OfLocalUpdatesHasOuterValuesAndTheSlotsThatTheChiefCollects) {
  TrainOptions options = options_of("local-sgd", 10);
  options.strategy.replicas = 2;
  options.strategy.local = {.sync_every = 4, .outer = "slowmo"};
  options.cluster.world_size = 3;
  const std::int64_t values = 4 * 26;
  RunMemory memory = least_memory(options, two_layers());
  EXPECT_EQ(memory.values, 2 * values) << "each replica has its own";
  EXPECT_EQ(memory.slots, 2 * 2 * values);
  EXPECT_EQ(memory.outer, 2 * values);
  EXPECT_EQ(memory.collected, 0) << "no checkpoints are written";
  options.loop.checkpoint_dir = "/tmp/run";
  memory = least_memory(options, two_layers());
  EXPECT_EQ(memory.collected, 6 * 2 * values) << "of six workers";
  EXPECT_EQ(memory.all(),
            2 * values + 4 * values + 12 * values + 2 * (3 * values + 4 * 10 * 4 + 2 * values));
  EXPECT_TRUE(contains(memory_refusal(options, two_layers(), {.available = memory.all() - 1}),
                       "of all workers' optimizer state for a checkpoint", "of outer values"));
  options.strategy.local.inner_state = InnerState::kAverage;
  EXPECT_EQ(least_memory(options, two_layers()).collected, 0);
  options.strategy.local.inner_state = InnerState::kKeep;
  options.cluster.index = 1;
  EXPECT_EQ(least_memory(options, two_layers()).collected, 0) << "only the chief collects";
}

TEST(LeastMemory, OfPushedDisplacementsHasTheValuesOfEachReplicaAndTheShard) {
  TrainOptions options = options_of("central-storage", 10);
  options.strategy.replicas = 2;
  options.strategy.consistency.consistency = ps::Consistency::kAsync;
  options.strategy.local = {.push = PushKind::kDisplacement, .sync_every = 4, .outer = "diloco"};
  const std::int64_t values = 4 * 26;
  const RunMemory memory = least_memory(options, two_layers());
  EXPECT_EQ(memory.values, 3 * values);
  EXPECT_EQ(memory.slots, 2 * 2 * values + values) << "of Adam, and the outer momentum";
  EXPECT_EQ(memory.outer, values) << "where the round began";
}

TEST(MemoryRefusal, IsEmptyFromTheSumOn) {
  const TrainOptions options = options_of("one-device", std::int64_t{1} << 20);
  const std::int64_t needed = least_memory(options, two_layers()).all();
  EXPECT_EQ(memory_refusal(options, two_layers(), {.available = needed}), "");
  const std::string refusal = memory_refusal(options, two_layers(), {.available = needed - 1});
  EXPECT_TRUE(contains(refusal,
                       "needs at least 16 MiB of memory in this process, and 16 MiB are "
                       "available: 0 MiB of values",
                       "16 MiB of activations (1048576 samples)", "--batch-size-per-replica"));
}

// All tasks of a host see the limit of the cgroup that they share.
TEST(MemoryRefusal, CountsAllTasksOfTheHost) {
  const TrainOptions options = options_of("parameter-server", std::int64_t{1} << 20);
  const std::int64_t needed = least_memory(options, two_layers()).all();
  HostMemory host{.available = needed, .total = 3 * needed, .tasks = 3};
  EXPECT_EQ(memory_refusal(options, two_layers(), host), "");
  host.tasks = 4;
  const std::string refusal = memory_refusal(options, two_layers(), host);
  EXPECT_TRUE(contains(refusal,
                       "needs at least 16 MiB of memory in each of the 4 tasks of this host, and "
                       "they share 48 MiB: "));
}

}  // namespace
}  // namespace syncopate
