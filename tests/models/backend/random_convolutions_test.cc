// Compares convolutions of random sizes with the interpreter, on every instruction set of this
// machine: oneDNN chooses another implementation for nearly every combination of kernel, stride,
// padding, groups and channels, and each wants its own layout of the weight.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/graph/graph_text.h"
#include "tests/models/backend/backend_case.h"

namespace syncopate {
namespace {

class ConvolutionDrawing {
 public:
  explicit ConvolutionDrawing(unsigned seed) : random_(seed) {}

  // Draws a network with one convolution. Returns nothing if its kernel is larger than its padded
  // input.
  std::optional<Graph> draw() {
    const int height = between(1, 12);
    const int width = between(1, 12);
    const bool reads_input = between(0, 1) == 0;  // the first layer computes no input gradient
    const bool is_transposed = between(0, 4) == 0;
    const int groups = !is_transposed && between(0, 2) == 0 ? between(1, 8) : 1;
    const int channels = groups * between(1, 6);
    const int outputs = between(0, 4) == 0 ? groups * 16 : groups * between(1, 6);
    try {
      GraphBuilder build("convolution");
      NodeId x = build.input({height, width, reads_input ? channels : 3}, {.dtype = DType::kF32});
      if (!reads_input) x = build.conv2d(x, "before", channels, {.kernel_h = 1, .kernel_w = 1});
      x = is_transposed ? draw_transposed(build, x, outputs)
                        : draw_convolution(build, x, outputs, groups);
      return build.finish(build.dense(build.flatten(x), "fc", 4));
    } catch (const ShapeError&) {
      return std::nullopt;
    }
  }

 private:
  int between(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  NodeId draw_convolution(GraphBuilder& build, NodeId x, int outputs, int groups) {
    Conv2dOp op{.kernel_h = between(1, 5),
                .kernel_w = between(1, 5),
                .stride = between(1, 3),
                .bias = between(0, 1) == 0,
                .groups = groups};
    op.pad = {between(0, op.kernel_h - 1), between(0, op.kernel_w - 1), between(0, op.kernel_h - 1),
              between(0, op.kernel_w - 1)};
    return build.conv2d(x, "conv", outputs, op);
  }

  NodeId draw_transposed(GraphBuilder& build, NodeId x, int outputs) {
    ConvTranspose2dOp op{.kernel_h = between(1, 4),
                         .kernel_w = between(1, 4),
                         .stride = between(1, 3),
                         .bias = between(0, 1) == 0};
    op.pad = {between(0, (op.kernel_h - 1) / 2), between(0, (op.kernel_w - 1) / 2),
              between(0, (op.kernel_h - 1) / 2), between(0, (op.kernel_w - 1) / 2)};
    return build.conv_transpose2d(x, "conv", outputs, op);
  }

  std::mt19937 random_;
};

TEST(ARandomConvolution, HasTheResultsOfTheInterpreter) {
  constexpr std::int64_t kSamples = 3;
  constexpr unsigned kDraws = 1000;
  unsigned drawn = 0;
  for (unsigned seed = 0; seed < kDraws; ++seed) {
    const std::optional<Graph> graph = ConvolutionDrawing(seed).draw();
    if (!graph) continue;
    ++drawn;
    const reference::Variables variables = reference::random_variables(*graph, seed + 1);
    const reference::Samples samples = reference::random_samples(*graph, kSamples, seed + 2);
    const Batch batch = make_batch(*graph, samples, kSamples);
    const reference::Result expected =
        reference::run(*graph, variables, samples, kSamples, Mode::kTrain);
    for (const Isa isa : {Isa::kV2, Isa::kV3, Isa::kV4}) {
      if (isa > detect_isa()) continue;
      BackendCase subject(*graph, variables, {.isa = isa, .batch_size = kSamples});
      const Scores scores = subject.step(batch);
      expect_equal(expected, subject, scores, *graph, 1e-4);
      if (HasFailure()) {
        FAIL() << "seed " << seed << ", instruction set " << static_cast<int>(isa) << "\n"
               << to_text(*graph);
      }
    }
  }
  EXPECT_GT(drawn, kDraws / 2) << "most draws should be networks";
}

}  // namespace
}  // namespace syncopate
