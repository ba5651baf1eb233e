// Tests that cuDNN has an engine for every convolution of our networks on an H200 that is only
// described, so nothing runs. Engines that compile on the device count as offered; the others are
// made ready completely.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "models/backend/cuda/conv_shape.h"
#include "models/backend/cuda/cudnn/convolution_plan.h"
#include "models/base/errors.h"
#include "models/zoo/zoo.h"

namespace syncopate::cuda {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Convolution {
  ConvShape shape;
  bool has_input_gradient = true;
  bool is_normalised = false;  // true if only a batch norm reads the output
};

bool is_normalised(const Graph& graph, NodeId convolution) {
  std::vector<bool> by_batch_norm;
  for (const Node& node : graph.nodes) {
    if (std::ranges::find(node.inputs, convolution) == node.inputs.end()) continue;
    by_batch_norm.push_back(std::holds_alternative<BatchNormOp>(node.operation));
  }
  return by_batch_norm == std::vector{true};
}

std::vector<Convolution> convolutions_of(const Graph& graph, std::int64_t n, Precision type) {
  std::vector<Convolution> found;
  std::set<std::string> seen;
  for (const Node& node : graph.nodes) {
    if (!std::holds_alternative<Conv2dOp>(node.operation)) continue;
    const auto& from = graph.nodes[static_cast<std::size_t>(node.inputs[0])];
    const bool reads_samples = std::holds_alternative<InputOp>(from.operation);
    const auto samples = reads_samples ? sample_fold(graph, node.inputs[0], n, type) : std::nullopt;
    const ConvShape shape = conv_shape(graph, node, n, type, samples ? &*samples : nullptr);
    if (!seen.insert(to_string(shape)).second) continue;
    found.push_back({shape, !reads_samples,
                     is_normalised(graph, static_cast<NodeId>(&node - graph.nodes.data()))});
  }
  return found;
}

struct Case {
  const char* name;
  Precision type;
  PlanLimits limits;
};

class AnH200 : public testing::TestWithParam<Case> {
 protected:
  void expect_engines(const std::vector<Convolution>& convolutions) const {
    for (const Convolution& convolution : convolutions) {
      for (const ConvPass pass :
           {ConvPass::kForward, ConvPass::kInputGradient, ConvPass::kWeightGradient}) {
        if (pass == ConvPass::kInputGradient && !convolution.has_input_gradient) continue;
        const ConvOffers offers =
            plan_convolution(pass, convolution.shape, target_, GetParam().limits, 1);
        EXPECT_GT(offers.engines, 0) << name(pass) << " of " << to_string(convolution.shape);
      }
    }
  }

  const PlanTarget target_ = PlanTarget::described(text_of(SYNCOPATE_H200));
};

NetworkInput small_images() {
  return {.sample_shape = {32, 32, 3}, .input = {.mean = {0, 0, 0}, .stddev = {1, 1, 1}}};
}
NetworkInput large_images() {
  return {.sample_shape = {224, 224, 3},
          .classes = 1000,
          .input = {.mean = {0, 0, 0}, .stddev = {1, 1, 1}}};
}

TEST_P(AnH200, HasAnEngineForEveryConvolutionOfTheGuidesNetwork) {
  const NetworkInput digits{.sample_shape = {28, 28, 1}, .input = {.mean = {0}, .stddev = {1}}};
  expect_engines(convolutions_of(mnist_cnn(digits), 64, GetParam().type));
}

TEST_P(AnH200, HasAnEngineForEveryConvolutionOfResnet20And56) {
  expect_engines(convolutions_of(resnet20(small_images()), 128, GetParam().type));
  expect_engines(convolutions_of(resnet56(small_images()), 128, GetParam().type));
}

TEST_P(AnH200, HasAnEngineForEveryConvolutionOfResnet50) {
  expect_engines(convolutions_of(resnet50(large_images()), 256, GetParam().type));
}

// The batches are a full batch and the tail of an epoch. cuDNN has no engine that sums for the
// first layers, however their channels are padded.
TEST(AnH200s, ConvolutionsButTheFirstSumInFp16ForTheBatchNormBehindThem) {
  const PlanTarget target = PlanTarget::described(text_of(SYNCOPATE_H200));
  for (const bool deterministic : {false, true}) {
    for (const std::int64_t n : {53, 256}) {
      std::vector<Convolution> all = convolutions_of(resnet50(large_images()), n, Precision::kF16);
      std::ranges::copy(convolutions_of(resnet20(small_images()), n, Precision::kF16),
                        std::back_inserter(all));
      std::erase_if(all, [](const Convolution& one) { return !one.has_input_gradient; });
      EXPECT_EQ(all.size(), 22U + 5U) << "shapes behind the first layers";
      for (const Convolution& convolution : all) {
        EXPECT_TRUE(convolution.is_normalised);
        const ConvOffers offers = plan_convolution(ConvPass::kForwardWithSums, convolution.shape,
                                                   target, {.deterministic = deterministic}, 1);
        EXPECT_EQ(offers.plans.size(), 1U) << to_string(convolution.shape);
      }
    }
  }
}

// For a convolution that cannot sum its output, cuDNN's list of engines is empty, without an error.
TEST(AnH200s, ConvolutionsDoNotSumInOtherTypesNorWhereChannelsFillNoPack) {
  const PlanTarget target = PlanTarget::described(text_of(SYNCOPATE_H200));
  constexpr ConvShape kShape{
      .n = 8, .height = 9, .width = 8, .channels = 16, .out_channels = 16, .type = Precision::kF16};
  const auto engines = [&](const ConvShape& shape) {
    return plan_convolution(ConvPass::kForwardWithSums, shape, target, {}, 1).engines;
  };
  EXPECT_GT(engines(kShape), 0);
  for (const Precision type : {Precision::kF32, Precision::kBf16}) {
    ConvShape shape = kShape;
    shape.type = type;
    EXPECT_EQ(engines(shape), 0) << name(type);
  }
  for (const std::int64_t channels : {1, 3, 4, 5, 12}) {
    ConvShape shape = kShape;
    shape.channels = channels;
    EXPECT_EQ(engines(shape), 0) << to_string(shape);
    shape = kShape;
    shape.out_channels = channels;
    EXPECT_EQ(engines(shape), 0) << to_string(shape);
  }
}

// Without folded samples cuDNN would pad in a workspace in each convolution.
TEST(AnH200s, FirstLayerNeedsNextToNoWorkspaceOnceFolded) {
  const PlanTarget target = PlanTarget::described(text_of(SYNCOPATE_H200));
  const auto workspace = [&](const ConvShape& stem) {
    const ConvOffers offers = plan_convolution(ConvPass::kForward, stem, target, {}, 1);
    return offers.plans.empty() ? -1 : offers.plans.front().workspace_bytes();
  };
  const Graph graph = resnet50(large_images());
  const auto stem = std::ranges::find_if(graph.nodes, [](const Node& node) {
    return std::holds_alternative<Conv2dOp>(node.operation);
  });
  for (const Precision type : {Precision::kF16, Precision::kBf16}) {
    SCOPED_TRACE(name(type));
    const auto samples = sample_fold(graph, stem->inputs[0], 256, type);
    ASSERT_TRUE(samples);
    EXPECT_GT(workspace(conv_shape(graph, *stem, 256, type, nullptr)), 50'000'000);
    const std::int64_t folded = workspace(conv_shape(graph, *stem, 256, type, &*samples));
    EXPECT_GE(folded, 0);
    EXPECT_LE(folded, 400'000);
  }
}

// The name of an engine identifies it between runs (plan_cache.h).
TEST_P(AnH200, HasEnginesThatAreFoundAgainByTheirNames) {
  const ConvShape shape{.n = 64,
                        .height = 28,
                        .width = 28,
                        .channels = 128,
                        .out_channels = 128,
                        .type = GetParam().type};
  std::vector passes{ConvPass::kForward, ConvPass::kInputGradient, ConvPass::kWeightGradient};
  if (GetParam().type == Precision::kF16) passes.push_back(ConvPass::kForwardWithSums);
  for (const ConvPass pass : passes) {
    const ConvOffers offers = plan_convolution(pass, shape, target_, GetParam().limits, 4);
    ASSERT_FALSE(offers.plans.empty());
    std::set<std::string> names;
    for (const ConvPlan& plan : offers.plans) {
      EXPECT_TRUE(names.insert(plan.engine()).second) << plan.engine() << " twice";
      const auto again = plan_convolution(pass, shape, target_, GetParam().limits, plan.engine());
      ASSERT_TRUE(again) << plan.engine();
      EXPECT_EQ(again->engine(), plan.engine());
      EXPECT_EQ(again->workspace_bytes(), plan.workspace_bytes());
    }
    EXPECT_FALSE(plan_convolution(pass, shape, target_, GetParam().limits, "no engine"));
  }
}

// The cache file keeps engines of different passes under different keys.
TEST(PassesOfAConvolution, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const ConvPass pass : {ConvPass::kForward, ConvPass::kForwardWithSums,
                              ConvPass::kInputGradient, ConvPass::kWeightGradient}) {
    EXPECT_TRUE(names.insert(name(pass)).second) << name(pass);
  }
}

constexpr PlanLimits kStrict{.deterministic = true, .rounds_inputs = false};
constexpr PlanLimits kDeterministic{.deterministic = true};
INSTANTIATE_TEST_SUITE_P(
    In, AnH200,
    testing::Values(Case{"F32", Precision::kF32, {}}, Case{"F32Strict", Precision::kF32, kStrict},
                    Case{"Bf16", Precision::kBf16, {}},
                    Case{"Bf16Deterministic", Precision::kBf16, kDeterministic},
                    Case{"Fp16", Precision::kF16, {}},
                    Case{"Fp16Deterministic", Precision::kF16, kDeterministic}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(ADescribedDevice, ThatIsInvalidIsRefused) {
  EXPECT_THROW(PlanTarget::described("{\"cudnnVersion\":1}"), DeviceError);
}

}  // namespace
}  // namespace syncopate::cuda
