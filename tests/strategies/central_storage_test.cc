// Replicas that keep step on one copy of the variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strategies/strategy.h"

namespace syncopate {
namespace {

constexpr std::int64_t kBatch = 4;

Graph small_network() {
  GraphBuilder build("small");
  NodeId x = build.input({4, 4, 2}, {.dtype = DType::kF32});
  x = build.relu(build.conv2d(x, "conv", 3, {.pad = 1}));
  return build.finish(build.dense(build.flatten(x), "fc", 5));
}

// Each replica has another one.
Batch batch_of(int replica) {
  Batch batch{make_host_tensor({kBatch, 4, 4, 2}, DType::kF32),
              make_host_tensor({kBatch}, DType::kI32), 2 * kBatch};
  float value = -1.0F + 0.25F * static_cast<float>(replica);
  for (float& x : batch.x.f32()) x = value = value < 1.0F ? value + 0.0625F : -1.0F;
  for (std::size_t i = 0; i < kBatch; ++i) batch.label.i32()[i] = static_cast<std::int32_t>(i);
  return batch;
}

Tensor copy_of(const Tensor& block) {
  const Tensor copy = make_host_tensor(block.shape(), DType::kF32);
  std::ranges::copy(block.f32(), copy.f32().begin());
  return copy;
}

Snapshot copy_of(const Snapshot& live) {
  Snapshot copy{copy_of(live.values), {}, copy_of(live.state)};
  for (const Snapshot::Slot& slot : live.slots) {
    copy.slots.push_back({slot.name, copy_of(slot.values)});
  }
  return copy;
}

bool same_blocks(const Snapshot& a, const Snapshot& b) {
  return std::ranges::equal(a.values.f32(), b.values.f32()) &&
         std::ranges::equal(a.slots, b.slots,
                            [](const Snapshot::Slot& one, const Snapshot::Slot& other) {
                              return std::ranges::equal(one.values.f32(), other.values.f32());
                            });
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
      const Batch batch = batch_of(replica.index);
      for (std::int64_t step = first_step; step <= last_step; ++step) {
        replica.variables->pull({.learning_rate = 0.05F, .step = step});
        (void)replica.model->forward(
            batch, [&](BucketId bucket) { replica.variables->wait_values(bucket); });
        replica.model->backward(
            [&](BucketId bucket, const Event& ready) { replica.variables->push(bucket, ready); });
        replica.variables->commit();
      }
    });
  }

  Graph graph_ = small_network();
};

TEST_F(CentralStorageStrategy, HasTheBitsOfMirrored) {
  const auto central = make("central-storage");
  const auto mirrored = make("mirrored");
  train(*central, 1, 5);
  train(*mirrored, 1, 5);
  EXPECT_TRUE(same_blocks(central->snapshot(), mirrored->snapshot()));
}

TEST_F(CentralStorageStrategy, GoesOnFromASnapshotAsIfItHadNeverStopped) {
  const auto uninterrupted = make("central-storage");
  train(*uninterrupted, 1, 3);
  const Snapshot saved = copy_of(uninterrupted->snapshot());
  train(*uninterrupted, 4, 6);

  const auto resumed = make("central-storage");
  train(*resumed, 1, 1);
  resumed->restore(saved);
  train(*resumed, 4, 6);
  EXPECT_TRUE(same_blocks(resumed->snapshot(), uninterrupted->snapshot()))
      << "Adam's bias correction is that of the step, not of the shard's age";
}

}  // namespace
}  // namespace syncopate
