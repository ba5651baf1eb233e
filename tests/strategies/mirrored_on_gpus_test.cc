// Tests replicas that sum gradients on their devices: reports, loss scales, and failures of a
// replica. The module emulates two GPUs, and an NCCL that sums in host memory.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "strategies/strategy.h"
#include "tests/strategies/small_training.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using test::kBatch;
using test::small_batch;
using test::small_network;

struct Case {
  std::string name;
  std::vector<Device> devices;
};

class ReplicasOnGpus : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Strategy> make(Precision precision = Precision::kF32) const {
    StrategyOptions options;
    options.precision = precision;
    options.name = "mirrored";
    options.batch_size_per_replica = kBatch;
    options.bucket_bytes = 256;
    options.replicas = 2;
    options.devices = GetParam().devices;
    options.optimizer.name = "momentum";
    return make_strategy(options, graph_);
  }

  StepReport step(Replica& replica) const {
    VariableStore& variables = *replica.variables;
    variables.pull({.learning_rate = 0.05F, .step = 1});
    const Scores scores =
        replica.model->forward(batch_, [&](BucketId bucket) { variables.wait_values(bucket); });
    replica.model->backward([&](BucketId bucket) { variables.push(bucket, {.scores = scores}); });
    return variables.commit();
  }

  Graph graph_ = small_network(/*has_batch_norm=*/false);
  Batch batch_ = small_batch(-1.0F, 2 * kBatch);
};

TEST_P(ReplicasOnGpus, SumOnTheDeviceAndReportThroughTheHost) {
  const auto strategy = make();
  std::vector<StepReport> reports(2);
  for (int i = 0; i < 4; ++i) {
    strategy->for_each_replica([&](Replica& replica) {
      ASSERT_NE(replica.device_collective, nullptr);
      reports[static_cast<std::size_t>(replica.index)] = step(replica);
    });
  }
  for (const StepReport& report : reports) EXPECT_EQ(report.scores.num_samples, 2 * kBatch);
  EXPECT_NO_THROW(synchronous_job(*strategy).agree()) << "replicas must hold the same bits";
}

TEST_P(ReplicasOnGpus, RestoreTheLossScaleOfACheckpoint) {
  const LossScaleState scale{.scale = 4096.0F, .good_steps = 7, .skipped_steps = 3};
  const auto strategy = make(Precision::kF16);
  Snapshot saved = strategy->snapshot();
  EXPECT_EQ(saved.loss_scale, (LossScaleState{.scale = 65536.0F}));
  saved.loss_scale = scale;
  strategy->restore(saved);
  for (const Replica& replica : strategy->replicas()) {
    EXPECT_EQ(replica.backend->loss_scale(*replica.arena), scale);
  }
  // A checkpoint of a run in f32 has no loss scale, and a run in f32 ignores one.
  saved.loss_scale = std::nullopt;
  strategy->restore(saved);
  EXPECT_EQ(strategy->snapshot().loss_scale, scale);
  const auto in_f32 = make();
  EXPECT_EQ(in_f32->snapshot().loss_scale, std::nullopt);
  saved.loss_scale = scale;
  EXPECT_NO_THROW(in_f32->restore(saved));
}

TEST_P(ReplicasOnGpus, AreWokenWhenOneOfThemThrows) {
  const auto strategy = make();
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_THROW(strategy->for_each_replica([&](Replica& replica) {
    if (replica.index == 1) throw FileError("its samples cannot be read");
    step(replica);
  }),
               FileError);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));
}

TEST_P(ReplicasOnGpus, ThrowTheReasonOfAnAbort) {
  const auto strategy = make();
  strategy->abort("rank 3 (host d) died");
  EXPECT_EQ(message_of<PeerError>(
                [&] { strategy->for_each_replica([&](Replica& replica) { step(replica); }); }),
            "rank 3 (host d) died");
}

INSTANTIATE_TEST_SUITE_P(Each, ReplicasOnGpus,
                         testing::Values(Case{"OneForBoth", {{DeviceKind::kCuda, 0}}},
                                         Case{"OneEach",
                                              {{DeviceKind::kCuda, 0}, {DeviceKind::kCuda, 1}}}),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace syncopate
