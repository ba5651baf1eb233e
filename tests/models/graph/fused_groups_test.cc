#include "models/graph/fused_groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

constexpr NetworkInput kDigits = {.sample_shape = {}, .classes = 10, .input = {}};

NetworkInput samples(std::int64_t size, std::int64_t channels) {
  NetworkInput input = kDigits;
  input.sample_shape = {size, size, channels};
  return input;
}

// Returns the names of the main operations of a graph's groups.
std::vector<std::string_view> main_operations(const Graph& graph,
                                              const std::vector<FusedGroup>& groups) {
  std::vector<std::string_view> names;
  for (const FusedGroup& group : groups) {
    names.push_back(name(graph.nodes[static_cast<std::size_t>(group.main)].operation));
  }
  return names;
}

TEST(FusedGroups, JoinTheWholeFirstLayerOfMnistCnn) {
  const Graph graph = mnist_cnn(samples(28, 1));
  const std::vector<FusedGroup> groups = match_groups(graph, true);
  EXPECT_EQ(main_operations(graph, groups),
            (std::vector<std::string_view>{"input", "conv2d", "dense", "dense",
                                           "softmax-cross-entropy"}));
  EXPECT_TRUE(groups[1].pool);
}

TEST(FusedGroups, AreSingleNodesWithoutFusion) {
  const Graph graph = mnist_cnn(samples(28, 1));
  const std::vector<FusedGroup> groups = match_groups(graph, false);
  ASSERT_EQ(groups.size(), graph.nodes.size());
  for (std::size_t i = 0; i < groups.size(); ++i)
    EXPECT_EQ(groups[i].output, static_cast<NodeId>(i));
}

TEST(FusedGroups, AbsorbTheResidualSumAndItsReluIntoTheSecondBatchNorm) {
  const Graph graph = resnet20(samples(32, 3));
  const std::vector<FusedGroup> groups = match_groups(graph, true);
  const auto with_sum = std::ranges::count_if(groups, [&](const FusedGroup& group) {
    return has_main<BatchNormOp>(graph, group) && group.add && group.relu &&
           group.inputs.size() == 2;
  });
  EXPECT_EQ(with_sum, 9);  // one residual sum in each block of resnet20
  const std::vector<std::string_view> operations = main_operations(graph, groups);
  EXPECT_EQ(std::ranges::count(operations, "add"), 0);
  EXPECT_EQ(std::ranges::count(operations, "relu"), 0);
}

TEST(FusedGroups, AreOrderedSuchThatInputsAreComputedFirst) {
  for (const bool fuse : {false, true}) {
    std::vector<NodeId> computed;
    for (const FusedGroup& group : match_groups(resnet56(samples(32, 3)), fuse)) {
      for (const NodeId input : group.inputs) {
        EXPECT_TRUE(std::ranges::find(computed, input) != computed.end()) << input;
      }
      computed.push_back(group.output);
    }
  }
}

TEST(FusedGroups, KeepAValueThatAnotherGroupReads) {
  GraphBuilder build("two readers");
  NodeId x = build.input({4, 4, 16}, {});
  const NodeId y = build.conv2d(x, "conv", 16, {.kernel_h = 3, .kernel_w = 3, .pad = 1});
  const NodeId z = build.add(build.relu(y), y);  // y has two readers, so it must be an output
  const Graph graph = build.finish(build.global_average_pool(z));
  const std::vector<FusedGroup> groups = match_groups(graph, true);
  const auto conv = std::ranges::find_if(
      groups, [&](const FusedGroup& group) { return has_main<Conv2dOp>(graph, group); });
  ASSERT_NE(conv, groups.end());
  EXPECT_FALSE(conv->relu);
  EXPECT_EQ(conv->output, y);
}

}  // namespace
}  // namespace syncopate
