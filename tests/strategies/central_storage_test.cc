// Tests synchronous replicas that share one copy of the variables.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "strategies/strategy.h"
#include "tests/strategies/small_training.h"

namespace syncopate {
namespace {

using test::copy_of;
using test::kBatch;
using test::same_blocks;

// Returns a different batch for each replica.
Batch batch_of_replica(int replica) {
  return test::small_batch(-1.0F + 0.25F * static_cast<float>(replica), 2 * kBatch);
}

class CentralStorageStrategy : public testing::Test {
 protected:
  std::unique_ptr<Strategy> make(const std::string& name) const {
    StrategyOptions options;
    options.name = name;
    options.seed = 7;
    options.batch_size_per_replica = kBatch;
    options.bucket_bytes = 256;
    options.replicas = 2;
    options.optimizer.name = "adam";
    return make_strategy(options, graph_);
  }

  static void train(Strategy& strategy, std::int64_t first_step, std::int64_t last_step) {
    strategy.for_each_replica([&](Replica& replica) {
      const Batch batch = batch_of_replica(replica.index);
      for (std::int64_t step = first_step; step <= last_step; ++step) {
        replica.variables->pull({.learning_rate = 0.05F, .step = step});
        (void)replica.model->forward(
            batch, [&](BucketId bucket) { replica.variables->wait_values(bucket); });
        replica.model->backward([&](BucketId bucket) { replica.variables->push(bucket, {}); });
        replica.variables->commit();
      }
    });
  }

  Graph graph_ = test::small_network(false);
};

TEST_F(CentralStorageStrategy, HasTheSameBitsAsMirrored) {
  const auto central = make("central-storage");
  const auto mirrored = make("mirrored");
  train(*central, 1, 5);
  train(*mirrored, 1, 5);
  EXPECT_TRUE(same_blocks(central->snapshot(), mirrored->snapshot()));
}

TEST_F(CentralStorageStrategy, ContinuesFromASnapshotBitForBit) {
  const auto uninterrupted = make("central-storage");
  train(*uninterrupted, 1, 3);
  const Snapshot saved = copy_of(uninterrupted->snapshot());
  train(*uninterrupted, 4, 6);

  const auto resumed = make("central-storage");
  train(*resumed, 1, 1);
  resumed->restore(saved);
  train(*resumed, 4, 6);
  EXPECT_TRUE(same_blocks(resumed->snapshot(), uninterrupted->snapshot()))
      << "Adam's bias correction must use the step number, not the shard's number of updates";
}

}  // namespace
}  // namespace syncopate
