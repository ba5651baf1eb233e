// Tests of what is refused for the sizes of a run.
#include "worker/run/run_sizes.h"

#include <gtest/gtest.h>

#include <string>

#include "models/base/errors.h"
#include "models/graph/graph.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

// A network with a batch norm of a map of `pixels` x 1 pixels.
Graph network_with_batch_norm(int pixels) {
  GraphBuilder build("n");
  NodeId x = build.input({pixels, 1, 1}, {});
  x = build.batch_norm(build.conv2d(x, "c", 2, {.kernel_h = 1, .kernel_w = 1}), "b");
  return build.finish(build.dense(build.flatten(x), "d", 2));
}

struct Step {
  int replicas = 1;
  std::int64_t batch = 1;
  int accumulate = 1;
  BatchNormStatistics statistics = BatchNormStatistics::kLocal;
};

std::string refusal_of(const Step& step, int pixels = 1) {
  TrainOptions options;
  options.model = "n";
  options.global_batch_size = step.batch;
  options.strategy.micro_batches = step.accumulate;
  options.strategy.batch_norm = step.statistics;
  return message_if_thrown<UsageError>([&] {
    require_batch_norm_values(network_with_batch_norm(pixels), options, step.replicas, step.batch);
  });
}

TEST(BatchNormValues, AreRefusedIfOneIsAllOfAChannel) {
  EXPECT_EQ(refusal_of({.batch = 1}),
            "--model n: batch norm b sees one value per channel and returns only its bias: its "
            "output [1, 1, 2] has one pixel, and a step has one sample; expected two samples or "
            "more: give --batch-size 2");
  EXPECT_EQ(refusal_of({.batch = 2}), "");
  EXPECT_EQ(refusal_of({.batch = 1}, 2), "");
}

TEST(BatchNormValues, AreThoseOfTheSmallestShareOfAReplica) {
  EXPECT_TRUE(contains(refusal_of({.replicas = 2, .batch = 2}),
                       "a batch of 2 leaves a replica one sample; expected two samples or more: "
                       "give --batch-size 4 or --batch-norm sync"));
  EXPECT_NE(refusal_of({.replicas = 2, .batch = 3}), "");  // 2 and 1
  EXPECT_EQ(refusal_of({.replicas = 2, .batch = 4}), "");
  EXPECT_EQ(refusal_of({.replicas = 3, .batch = 4}), "");  // 2, 2 and none
}

TEST(BatchNormValues, AreThoseOfAPartOfTheStep) {
  EXPECT_TRUE(contains(refusal_of({.batch = 2, .accumulate = 2}),
                       "a part of --accumulate one sample", " or a smaller --accumulate"));
  EXPECT_EQ(refusal_of({.batch = 4, .accumulate = 2}), "");
}

TEST(BatchNormValues, AreThoseOfAllReplicasIfStatisticsAreSynchronized) {
  constexpr auto kSync = BatchNormStatistics::kSync;
  EXPECT_EQ(refusal_of({.replicas = 2, .batch = 2, .statistics = kSync}), "");
  EXPECT_NE(refusal_of({.replicas = 1, .batch = 1, .statistics = kSync}), "");
  EXPECT_EQ(refusal_of({.replicas = 2, .batch = 4, .accumulate = 2, .statistics = kSync}), "");
  EXPECT_NE(refusal_of({.replicas = 1, .batch = 2, .accumulate = 2, .statistics = kSync}), "");
}

TEST(LearningRateFactor, OfLocalUpdatesIsForAWorkersBatchUnlessGradientsAreSummedFirst) {
  TrainOptions options;
  options.strategy.name = "local-sgd";
  options.learning_rate_scale = LearningRateScale::kLinear;
  options.reference_batch_size = 16;
  options.strategy.local = {.sync_every = 8};
  EXPECT_EQ(learning_rate_factor(options, 4, 128), 2.0);
  options.strategy.local = {.sync_every = 8, .outer = "post-local", .local_from = 1.0};
  EXPECT_EQ(learning_rate_factor(options, 4, 128), 8.0);
}

}  // namespace
}  // namespace syncopate
