// Compares a training step of ResNet-50 with the interpreter. The networks for small images are
// compared with PyTorch in tests/golden.
#include <gtest/gtest.h>

#include "models/zoo/zoo.h"
#include "tests/models/backend/backend_case.h"

namespace syncopate {
namespace {

TEST(Resnet50, AgreesWithTheInterpreter) {
  constexpr std::int64_t kImages = 4;
  const Graph graph =
      resnet50({.sample_shape = {64, 64, 3}, .classes = 10, .input = {.dtype = DType::kF32}});
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
  for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
    EXPECT_LE(reference::relative_l2(expected.gradients[p], subject.arena.gradient(p).f32()), 0.1)
        << graph.parameters[p].name;
  }
}

}  // namespace
}  // namespace syncopate
