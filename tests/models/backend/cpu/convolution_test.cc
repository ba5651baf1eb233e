#include "models/backend/cpu/convolution.h"

#include <gtest/gtest.h>

#include "models/backend/cpu/kernels/cpu_kernels.h"
#include "models/backend/cpu/lanes.h"
#include "models/backend/cpu/weight_gradient.h"
#include "models/base/isa.h"
#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

bool is_reference(const std::string& implementation) {
  return implementation.find("ref") != std::string::npos;
}

TEST(Convolutions, UseOptimisedKernelsInEveryNetwork) {
  // The test finds convolutions for which oneDNN falls back to reference loops, a hundred times
  // slower, without reporting it.
  const NetworkInput input = {.sample_shape = {32, 32, 3}, .classes = 10, .input = {}};
  const NetworkInput large = {.sample_shape = {224, 224, 3}, .classes = 10, .input = {}};
  const OneDnn onednn;
  LanePool one_lane(1);  // oneDNN plans for the number of threads of the caller
  for (const Graph& graph : {resnet20(input), resnet56(input), resnet50(large), mnist_cnn(input)}) {
    for (const Node& node : graph.nodes) {
      const auto* op = std::get_if<Conv2dOp>(&node.operation);
      if (op == nullptr) continue;
      const Shape& in = graph.nodes[static_cast<std::size_t>(node.inputs[0])].shape;
      const Convolution conv = {.problem = {.n = 32,
                                            .c = in[2],
                                            .k = node.shape[2],
                                            .h = in[0],
                                            .w = in[1],
                                            .kernel_h = op->kernel_h,
                                            .kernel_w = op->kernel_w,
                                            .stride = op->stride,
                                            .pad = op->pad},
                                .block = cpu_kernels(detect_isa()).block,
                                .planar_input = in[2] <= 3,
                                .bias = op->bias};
      one_lane.run([&](int) {
        for (const ConvAlgorithm algorithm :
             {ConvAlgorithm::kDirect, choose_algorithm(conv.problem, ConvPass::kForward)}) {
          if (algorithm == ConvAlgorithm::kWinograd && conv.block != 16) continue;
          const std::string name = graph.name + " " + node.name;
          EXPECT_FALSE(is_reference(conv.forward(onednn.engine, algorithm).impl_info_str()))
              << name;
          EXPECT_FALSE(
              is_reference(conv.backward_weights(onednn.engine, algorithm).impl_info_str()))
              << name;
          if (in[2] <= 3) continue;  // the samples need no gradient
          EXPECT_FALSE(is_reference(conv.backward_data(onednn.engine, algorithm).impl_info_str()))
              << name;
        }
      });
    }
  }
}

// With AVX2, oneDNN's fast code for maps in blocks needs maps larger than the kernel.
TEST(Convolutions, UseAnOptimisedWeightGradientForTheSmallestMaps) {
  const OneDnn onednn;
  LanePool one_lane(1);
  for (const std::int64_t size : {1, 2, 3, 4}) {
    const Convolution conv = {.problem = {.n = 4,
                                          .c = 64,
                                          .k = 48,
                                          .h = size,
                                          .w = size,
                                          .kernel_h = 3,
                                          .kernel_w = 3,
                                          .stride = 1,
                                          .pad = 1},
                              .block = cpu_kernels(detect_isa()).block};
    one_lane.run([&](int) {
      WeightGradient gradient;
      gradient.describe(onednn.engine, conv, {}, ConvAlgorithm::kDirect);
      EXPECT_FALSE(is_reference(gradient.kernel())) << size << ": " << gradient.kernel();
    });
  }
}

struct Window {
  int kernel;
  int stride;
  Padding pad;
};

TEST(Convolutions, UseOptimisedKernelsForFewChannels) {
  constexpr Window kWindows[] = {{1, 1, 0}, {1, 2, 0}, {3, 1, 1},           {3, 2, 1},
                                 {5, 1, 2}, {5, 2, 2}, {3, 2, {0, 0, 1, 1}}};
  const OneDnn onednn;
  LanePool one_lane(1);
  const int block = cpu_kernels(detect_isa()).block;
  for (const int c : {4, 6, 8, 12, 15, 20}) {
    for (const int k : {4, 10, 16, 24}) {
      for (const auto& [kernel, stride, pad] : kWindows) {
        const Convolution conv = {.problem = {.n = 8,
                                              .c = c,
                                              .k = k,
                                              .h = 16,
                                              .w = 16,
                                              .kernel_h = kernel,
                                              .kernel_w = kernel,
                                              .stride = stride,
                                              .pad = pad},
                                  .block = block,
                                  .bias = true};
        SCOPED_TRACE(std::to_string(c) + " to " + std::to_string(k) + " channels, kernel " +
                     std::to_string(kernel) + ", stride " + std::to_string(stride));
        one_lane.run([&](int) {
          constexpr auto kDirect = ConvAlgorithm::kDirect;
          EXPECT_FALSE(is_reference(conv.forward(onednn.engine, kDirect).impl_info_str()));
          EXPECT_FALSE(is_reference(conv.backward_weights(onednn.engine, kDirect).impl_info_str()));
          EXPECT_FALSE(is_reference(conv.backward_data(onednn.engine, kDirect).impl_info_str()));
        });
      }
    }
  }
}

TEST(AlgorithmTable, DeterminesTheChoiceForEveryBatchSize) {
  for (const AlgorithmRow& row : algorithm_table()) {
    ConvProblem problem = {.n = 1,
                           .c = row.c,
                           .k = row.k,
                           .h = row.h,
                           .w = row.h,
                           .kernel_h = 3,
                           .kernel_w = 3,
                           .stride = 1,
                           .pad = 1};
    EXPECT_EQ(choose_algorithm(problem, ConvPass::kForward), row.forward);
    // The choice of an algorithm does not depend on the batch size, nor on the number of threads.
    problem.n = 64;
    EXPECT_EQ(choose_algorithm(problem, ConvPass::kBackwardWeights), row.backward_weights);
    problem.stride = 2;
    EXPECT_EQ(choose_algorithm(problem, ConvPass::kForward), ConvAlgorithm::kDirect);
  }
}

}  // namespace
}  // namespace syncopate
