// Compares a training step of resnet50 and resnet50-v1 with the interpreter. The networks for small
// images are compared with PyTorch in tests/golden.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "models/zoo/zoo.h"
#include "tests/models/backend/backend_case.h"

namespace syncopate {
namespace {

template <typename Values>
double square_of(const Values& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return sum;
}

class Resnet50 : public testing::TestWithParam<Graph (*)(const NetworkInput&)> {};

TEST_P(Resnet50, AgreesWithTheInterpreter) {
  constexpr std::int64_t kImages = 4;
  const Graph graph =
      GetParam()({.sample_shape = {64, 64, 3}, .classes = 10, .input = {.dtype = DType::kF32}});
  const reference::Variables variables = reference::random_variables(graph, 51);
  const reference::Samples samples = reference::random_samples(graph, kImages, 52);
  const reference::Result expected =
      reference::run(graph, variables, samples, kImages, Mode::kTrain);
  BackendCase subject(graph, variables,
                      {.lanes = 2, .batch_size = kImages, .bucket_bytes = 4 << 20});
  const Scores scores = subject.step(make_batch(graph, samples, kImages));

  // The tolerance of the logits, 2e-4, covers f32 rounding through 54 layers, normalised over the
  // 16 values that a channel has at the end. The measured distance is 3e-5.
  EXPECT_NEAR(scores.loss, expected.loss, 2e-4 * expected.loss);
  EXPECT_LE(reference::relative_l2(expected.logits, subject.model->logits().f32()), 2e-4);
  for (std::size_t s = 0; s < expected.state.size(); ++s) {
    EXPECT_LE(reference::relative_l2(expected.state[s], subject.state.value(s).f32()), 2e-4)
        << graph.state[s].name;
  }
  // The tolerance of the gradients, 0.1, covers inputs of a ReLU that rounding moves to the other
  // side of zero. Each of them changes the gradients of earlier layers by about 1e-2. The measured
  // distances are 8e-3 to 4e-2, also with half and with twice the batch.
  // A batch norm removes what the bias of a convolution adds, so the gradient of that bias is zero
  // and its rounding errors are compared with the whole gradient.
  double whole = 0.0;
  for (const std::vector<double>& gradient : expected.gradients) whole += square_of(gradient);
  for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
    const std::span<const float> found = subject.arena.gradient(p).f32();
    const std::string& name = graph.parameters[p].name;
    if (square_of(expected.gradients[p]) < 1e-20 * whole) {
      EXPECT_TRUE(name.ends_with(".bias")) << name;
      EXPECT_LE(square_of(found), 1e-12 * whole) << name;
    } else {
      EXPECT_LE(reference::relative_l2(expected.gradients[p], found), 0.1) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Resnet50, testing::Values(resnet50, resnet50_v1));

}  // namespace
}  // namespace syncopate
