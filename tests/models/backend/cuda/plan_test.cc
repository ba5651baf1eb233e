// Whether cuDNN has an engine for every convolution that our networks ask for, on an H200 that is
// only described: nothing runs here. Engines that are compiled on the device count as they are
// offered; the others are made ready to the last step.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "models/backend/cuda/cudnn/convolution.h"
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
};

std::vector<Convolution> convolutions_of(const Graph& graph, std::int64_t n) {
  std::vector<Convolution> found;
  std::set<std::string> seen;
  for (const Node& node : graph.nodes) {
    const auto* op = std::get_if<Conv2dOp>(&node.operation);
    if (op == nullptr) continue;
    const auto& from = graph.nodes[static_cast<std::size_t>(node.inputs[0])];
    const ConvShape shape{.n = n,
                          .height = from.shape[0],
                          .width = from.shape[1],
                          .channels = from.shape[2],
                          .out_channels = node.shape[2],
                          .kernel_h = op->kernel_h,
                          .kernel_w = op->kernel_w,
                          .stride = op->stride,
                          .pad = op->pad};
    if (!seen.insert(to_string(shape)).second) continue;
    found.push_back({shape, !std::holds_alternative<InputOp>(from.operation)});
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
    for (Convolution convolution : convolutions) {
      convolution.shape.type = GetParam().type;
      if (!convolution.has_input_gradient) {
        convolution.shape.channels =
            padded_channels(convolution.shape.channels, convolution.shape.type);
      }
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

TEST_P(AnH200, HasAnEngineForEveryConvolutionOfTheGuidesNetwork) {
  const NetworkInput digits{.sample_shape = {28, 28, 1}, .input = {.mean = {0}, .stddev = {1}}};
  expect_engines(convolutions_of(mnist_cnn(digits), 64));
}

TEST_P(AnH200, HasAnEngineForEveryConvolutionOfResnet20And56) {
  const NetworkInput images{.sample_shape = {32, 32, 3},
                            .input = {.mean = {0, 0, 0}, .stddev = {1, 1, 1}}};
  expect_engines(convolutions_of(resnet20(images), 128));
  expect_engines(convolutions_of(resnet56(images), 128));
}

TEST_P(AnH200, HasAnEngineForEveryConvolutionOfResnet50) {
  const NetworkInput images{.sample_shape = {224, 224, 3},
                            .classes = 1000,
                            .input = {.mean = {0, 0, 0}, .stddev = {1, 1, 1}}};
  expect_engines(convolutions_of(resnet50(images), 256));
}

// Otherwise cuDNN pads in a workspace of its own, in each convolution.
TEST(AnH200s, FirstLayerNeedsNextToNoWorkspaceOncePadded) {
  const PlanTarget target = PlanTarget::described(text_of(SYNCOPATE_H200));
  for (const Precision type : {Precision::kF16, Precision::kBf16}) {
    SCOPED_TRACE(name(type));
    ConvShape stem{.n = 256,
                   .height = 224,
                   .width = 224,
                   .channels = 3,
                   .out_channels = 64,
                   .kernel_h = 7,
                   .kernel_w = 7,
                   .stride = 2,
                   .pad = 3,
                   .type = type};
    const auto workspace = [&] {
      const ConvOffers offers = plan_convolution(ConvPass::kForward, stem, target, {}, 1);
      return offers.plans.empty() ? -1 : offers.plans.front().workspace_bytes();
    };
    EXPECT_GT(workspace(), 50'000'000);
    stem.channels = padded_channels(stem.channels, type);
    const std::int64_t padded = workspace();
    EXPECT_GE(padded, 0);
    EXPECT_LE(padded, 400'000);
  }
}

// By its name an engine is kept between runs (plan_cache.h).
TEST_P(AnH200, HasEnginesThatAreFoundAgainByTheirNames) {
  const ConvShape shape{.n = 64,
                        .height = 28,
                        .width = 28,
                        .channels = 128,
                        .out_channels = 128,
                        .type = GetParam().type};
  for (const ConvPass pass :
       {ConvPass::kForward, ConvPass::kInputGradient, ConvPass::kWeightGradient}) {
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

TEST(ADescribedDevice, ThatIsNoneIsRefused) {
  EXPECT_THROW(PlanTarget::described("{\"cudnnVersion\":1}"), DeviceError);
}

}  // namespace
}  // namespace syncopate::cuda
