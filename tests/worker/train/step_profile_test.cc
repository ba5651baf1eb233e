// Tests when a step uses and completes the buckets of a network with two dense layers.
#include "worker/train/step_profile.h"

#include <gtest/gtest.h>

#include "models/graph/graph.h"

namespace syncopate {
namespace {

// The first layer has 30 x 10 multiply-adds, the second 10 x 10: three quarters and one quarter.
Graph two_layers() {
  GraphBuilder builder("two");
  NodeId x = builder.input({30}, {});
  x = builder.relu(builder.dense(x, "first", 10));
  x = builder.dense(x, "second", 10);
  return builder.finish(x);
}

TEST(StepProfile, UsesBucketsInForwardAndCompletesThemInBackwardOrder) {
  const Graph graph = two_layers();
  const ArenaLayout layout = graph.parameter_layout();
  // Bucket 0 holds the second layer.
  const std::vector<Bucket> buckets = plan_buckets(layout, 300);
  ASSERT_EQ(buckets.size(), 2U);
  const StepProfile profile(graph, layout, buckets);
  EXPECT_DOUBLE_EQ(profile.use(1), 0.0);
  EXPECT_DOUBLE_EQ(profile.use(0), 0.75 / 3.0);
  EXPECT_DOUBLE_EQ(profile.completion(0), 1.0 / 3.0 + 0.25 * 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(profile.completion(1), 1.0);
}

TEST(StepProfile, CompletesGradientsInTheLastMicroBatch) {
  const Graph graph = two_layers();
  const ArenaLayout layout = graph.parameter_layout();
  const StepProfile profile(graph, layout, plan_buckets(layout, 300), 4);
  EXPECT_DOUBLE_EQ(profile.use(0), 0.75 / 3.0 / 4.0);
  EXPECT_DOUBLE_EQ(profile.completion(0), 1.0 - 0.75 * 2.0 / 3.0 / 4.0);
  EXPECT_DOUBLE_EQ(profile.completion(1), 1.0);
}

TEST(StepProfile, CompletesClippedGradientsAtItsEnd) {
  const Graph graph = two_layers();
  const ArenaLayout layout = graph.parameter_layout();
  StepProfile profile(graph, layout, plan_buckets(layout, 300));
  profile.complete_at_end();
  EXPECT_DOUBLE_EQ(profile.completion(0), 1.0);
  EXPECT_DOUBLE_EQ(profile.use(0), 0.75 / 3.0);
}

}  // namespace
}  // namespace syncopate
