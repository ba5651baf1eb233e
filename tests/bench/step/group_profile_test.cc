#include "bench/step/group_profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/step/workload.h"
#include "tests/support/contains.h"

namespace syncopate::bench {
namespace {

// input -> flatten -> dense 784 x 128 + ReLU -> dense 128 x 10 -> loss; 4 samples of 2-byte values.
TEST(GroupBytes, OfTwoDenseLayersAreCountedByHand) {
  const Graph graph = build_graph(find_workload("mlp"));
  const std::vector<FusedGroup> groups = match_groups(graph, true);
  const std::vector<GroupBytes> bytes = count_group_bytes(graph, groups, 4, 2);
  ASSERT_EQ(bytes.size(), 4U);
  EXPECT_DOUBLE_EQ(bytes[0].forward, 4 * 784 * (2 + 1));  // pixels are bytes
  EXPECT_DOUBLE_EQ(bytes[0].backward, 0);
  EXPECT_DOUBLE_EQ(bytes[1].forward, 4 * 2 * (784 + 128));
  EXPECT_DOUBLE_EQ(bytes[1].backward, 4 * 2 * (784 + 128));  // the pixels have no gradient
  EXPECT_DOUBLE_EQ(bytes[2].backward, 4 * 2 * (128 + 10 + 10 + 128));
  EXPECT_DOUBLE_EQ(bytes[3].forward, 4 * 2 * (10 + 10));
}

// A count of ResNet-50's kernels by hand gives 350 MB per image in 16 bits.
TEST(GroupBytes, OfResnet50AreWhatIsKnown) {
  const Graph graph = build_graph(find_workload("resnet50"));
  const std::vector<GroupBytes> bytes = count_group_bytes(graph, match_groups(graph, true), 1, 2);
  const double total = std::accumulate(
      bytes.begin(), bytes.end(), 0.0,
      [](double sum, const GroupBytes& of) { return sum + of.forward + of.backward; });
  EXPECT_NEAR(total, 350e6, 10e6);
}

TEST(GroupProfile, ListsTheLongestTimeFirstWithItsRate) {
  const Graph graph = build_graph(find_workload("mlp"));
  const FusedGroup dense = match_groups(graph, true)[1];
  const std::vector<GroupProfile> groups = {
      {.time = {.group = dense, .forward_seconds = 1e-3, .backward_seconds = 3e-3},
       .bytes = {.forward = 2e6, .backward = 6e6}},
      {.time = {.group = dense, .forward_seconds = 1e-3, .backward_seconds = 1e-3},
       .bytes = {.forward = 2e6, .backward = 2e6}}};
  const std::string text = describe_groups(graph, groups);
  const std::size_t backward = text.find("backward");
  EXPECT_LT(backward, text.find("forward")) << text;
  EXPECT_TRUE(contains(text, "66.7"));  // % of the time
  EXPECT_TRUE(contains(text, "2.00"));  // GB/s
}

}  // namespace
}  // namespace syncopate::bench
