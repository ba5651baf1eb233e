// Compares the gradients of the interpreter with central differences of its loss.
#include "tests/reference/interpreter.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/reference/random_case.h"

namespace syncopate::reference {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr double kLossDivisor = 5.0;  // not the batch size, so that a missing division shows
constexpr double kStep = 1e-5;

// The difference step makes both errors of central differences, step^2 / 6 * f''' and 1e-16 / step,
// smaller than 1e-9 of these gradients.
constexpr double kTolerance = 1e-6;

NodeId start(GraphBuilder& build, Shape shape) {
  return build.input(std::move(shape), {.dtype = DType::kF32});
}

Values numeric_gradient(const Graph& graph, Variables variables, const Samples& samples,
                        std::size_t p) {
  Values gradient;
  for (double& value : variables.parameters[p]) {
    const double kept = value;
    value = kept + kStep;
    const double above = run(graph, variables, samples, kLossDivisor, Mode::kTrain).loss;
    value = kept - kStep;
    const double below = run(graph, variables, samples, kLossDivisor, Mode::kTrain).loss;
    value = kept;
    gradient.push_back((above - below) / (2.0 * kStep));
  }
  return gradient;
}

void expect_gradients_are_slopes(const Graph& graph) {
  const Variables variables = random_variables(graph, 11);
  const Samples samples = random_samples(graph, kBatch, 12);
  const Result result = run(graph, variables, samples, kLossDivisor, Mode::kTrain);
  ASSERT_EQ(result.gradients.size(), graph.parameters.size());
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const Values slopes = numeric_gradient(graph, variables, samples, p);
    EXPECT_LE(relative_l2(slopes, result.gradients[p]), kTolerance) << graph.parameters[p].name;
  }
}

TEST(InterpreterGradients, AreTheSlopesOfDenseAndLoss) {
  GraphBuilder build("dense");
  const NodeId x = build.dense(start(build, {6}), "a", 5);
  expect_gradients_are_slopes(build.finish(build.dense(x, "b", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfALossWithSmoothedLabels) {
  GraphBuilder build("smoothed");
  Graph graph = build.finish(build.dense(start(build, {6}), "a", 3));
  graph.set_label_smoothing(0.3F);
  expect_gradients_are_slopes(graph);
}

TEST(InterpreterGradients, AreTheSlopesOfLossesOfNumbers) {
  for (const LossKind kind : {LossKind::kBinaryCrossEntropy, LossKind::kMeanSquaredError}) {
    GraphBuilder build("numbers");
    const NodeId x = build.dense(start(build, {6}), "a", 4);
    expect_gradients_are_slopes(build.finish(x, {.kind = kind}));
  }
}

TEST(InterpreterGradients, AreTheSlopesOfConvolutionWithStrideAndPadding) {
  GraphBuilder build("conv");
  NodeId x = start(build, {6, 5, 2});
  x = build.conv2d(x, "a", 3, {.kernel_h = 3, .kernel_w = 2, .stride = 1, .pad = 1, .bias = true});
  x = build.conv2d(x, "b", 2, {.kernel_h = 3, .kernel_w = 3, .stride = 2, .pad = 1});
  expect_gradients_are_slopes(build.finish(build.dense(build.flatten(x), "fc", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfBatchNorm) {
  GraphBuilder build("bn");
  NodeId x = build.conv2d(start(build, {4, 4, 2}), "conv", 3, {});
  x = build.batch_norm(x, "bn");
  expect_gradients_are_slopes(build.finish(build.dense(build.flatten(x), "fc", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfMaxPool) {
  GraphBuilder build("pool");
  NodeId x = build.conv2d(start(build, {7, 6, 1}), "conv", 3, {.bias = true});
  x = build.max_pool(x, {.window = 2, .stride = 2});
  expect_gradients_are_slopes(build.finish(build.dense(build.flatten(x), "fc", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfOverlappingMaxPool) {
  GraphBuilder build("pool");
  NodeId x = build.conv2d(start(build, {7, 7, 1}), "conv", 2, {.bias = true});
  x = build.max_pool(x, {.window = 3, .stride = 1});
  expect_gradients_are_slopes(build.finish(build.dense(build.flatten(x), "fc", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfPaddedMaxPool) {
  GraphBuilder build("pool");
  NodeId x = build.conv2d(start(build, {8, 7, 1}), "conv", 2, {.bias = true});
  x = build.max_pool(x, {.window = 3, .stride = 2, .pad = 1});
  expect_gradients_are_slopes(build.finish(build.dense(build.flatten(x), "fc", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfGlobalAveragePool) {
  GraphBuilder build("average");
  const NodeId x = build.conv2d(start(build, {5, 4, 2}), "conv", 4, {.bias = true});
  expect_gradients_are_slopes(build.finish(build.dense(build.global_average_pool(x), "fc", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfShortcutAndAdd) {
  GraphBuilder build("shortcut");
  const NodeId x = build.conv2d(start(build, {5, 5, 2}), "a", 2, {.pad = 1, .bias = true});
  const NodeId y = build.conv2d(x, "b", 4, {.stride = 2, .pad = 1, .bias = true});
  const NodeId sum = build.add(y, build.shortcut(x, 2, 4));
  expect_gradients_are_slopes(build.finish(build.dense(build.flatten(sum), "fc", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfRelu) {
  GraphBuilder build("relu");
  const NodeId x = build.relu(build.dense(start(build, {6}), "a", 8));
  expect_gradients_are_slopes(build.finish(build.dense(x, "b", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfAllOperationsTogether) {
  GraphBuilder build("all");
  NodeId x = build.input({9, 9, 2}, {.mean = {0.4F, 0.5F}, .stddev = {0.3F, 0.2F}});
  x = build.relu(build.conv2d(x, "conv1", 3, {.bias = true}));
  const NodeId pooled = build.max_pool(x);
  NodeId y = build.conv2d(pooled, "conv2", 4, {.stride = 2, .pad = 1});
  y = build.relu(build.batch_norm(y, "bn2"));
  y = build.batch_norm(build.conv2d(y, "conv3", 4, {.kernel_h = 1, .kernel_w = 1}), "bn3");
  const NodeId joined = build.relu(build.add(y, build.shortcut(pooled, 2, 4)));
  expect_gradients_are_slopes(
      build.finish(build.dense(build.global_average_pool(joined), "fc", 3)));
}

TEST(InterpreterGradients, AreTheSlopesOfOperationsOnAxes) {
  GraphBuilder build("axes");
  const NodeId x = build.conv2d(start(build, {3, 2, 2}), "a", 4, {.pad = 1, .bias = true});
  NodeId y = build.upsample2d(x, {.mode = Interpolation::kBilinear});  // [6, 4, 4]
  y = build.slice(y, 1, 3);
  y = build.matmul(build.softmax(y), build.transpose(y, {0, 2, 1}));
  y = build.multiply(y, build.reduce_mean(build.linear(y, 0.5F, 1.0F), std::array{0, 1}));
  y = build.reshape(build.upsample2d(y, {.scale = 3}), {4, 12, 18});
  y = build.activation(build.clip(y, -0.4F, 9.0F), Activation::kHardSigmoid);
  expect_gradients_are_slopes(build.finish(build.dense(build.flatten(y), "fc", 3)));
}

TEST(Interpreter, UsesAndKeepsRunningStatisticsInEvaluation) {
  GraphBuilder build("bn");
  const NodeId x = build.batch_norm(start(build, {1, 1, 1}), "bn", {.epsilon = 0.0F});
  const Graph graph = build.finish(build.flatten(x));
  // With running statistics, the expected output is (5 - 3) / sqrt(4) * 10 + 1 = 11.
  const Variables variables{{{10.0}, {1.0}}, {{3.0}, {4.0}}};
  const Result result = run(graph, variables, {{5.0}, {0}}, 1.0, Mode::kEvaluate);
  EXPECT_DOUBLE_EQ(result.logits[0], 11.0);
  EXPECT_EQ(result.state, variables.state);
}

TEST(Interpreter, MovesRunningStatisticsTowardsTheUnbiasedVarianceOfTheBatch) {
  GraphBuilder build("bn");
  const NodeId x =
      build.batch_norm(start(build, {1, 1, 1}), "bn", {.epsilon = 0.0F, .momentum = 0.5F});
  const Graph graph = build.finish(build.flatten(x));
  // The samples 2 and 4 have mean 3, biased variance 1 and unbiased variance 2.
  const Result result =
      run(graph, {{{1.0}, {0.0}}, {{1.0}, {4.0}}}, {{2.0, 4.0}, {0, 0}}, 2.0, Mode::kTrain);
  EXPECT_DOUBLE_EQ(result.state[0][0], 2.0);
  EXPECT_DOUBLE_EQ(result.state[1][0], 3.0);
  EXPECT_EQ(result.logits, (Values{-1.0, 1.0}));
}

TEST(Interpreter, CountsASampleAsCorrectWhenItsLabelHasTheLargestLogit) {
  GraphBuilder build("identity");
  const Graph graph = build.finish(start(build, {2}));
  const Result result = run(graph, {}, {{1.0, 2.0, 4.0, 3.0}, {1, 1}}, 2.0, Mode::kEvaluate);
  EXPECT_EQ(result.metric, 1);
}

TEST(Interpreter, GivesZeroGradientsAndKeepsTheStateForAnEmptyBatch) {
  GraphBuilder build("empty");
  const NodeId x = build.batch_norm(start(build, {2, 2, 1}), "bn");
  const Graph graph = build.finish(build.dense(build.flatten(x), "fc", 2));
  const Variables variables = random_variables(graph, 3);
  const Result result = run(graph, variables, {}, 4.0, Mode::kTrain);
  EXPECT_EQ(result.loss, 0.0);
  EXPECT_EQ(result.state, variables.state);
  EXPECT_EQ(result.gradients[2], Values(8, 0.0));
}

}  // namespace
}  // namespace syncopate::reference
