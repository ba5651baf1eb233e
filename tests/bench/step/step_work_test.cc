#include "bench/step/step_work.h"

#include <gtest/gtest.h>

#include "bench/step/workload.h"

namespace syncopate::bench {
namespace {

// The network has layers of 784 -> 128 -> 10; the gradient of the pixels is not computed.
TEST(StepWork, OfTwoDenseLayersIsCountedByHand) {
  const Graph graph = build_graph(find_workload("mlp"));
  const double flops = 2.0 * (2.0 * 784 * 128 + 3.0 * 128 * 10);
  const double elements = 2.0 * (784 + 128) + 3.0 * (128 + 10);
  const double parameters = 784 * 128 + 128 + 128 * 10 + 10;
  const StepWork work = count_work(graph, 64, 2);
  EXPECT_DOUBLE_EQ(work.flops, 64 * flops);
  EXPECT_DOUBLE_EQ(work.bytes, 64 * (2.0 * elements + 3.0 * 784) + parameters * (3.0 * 2.0 + 20.0));
}

// The forward pass of ResNet-50 has 4.09 G multiplications (He et al. 2016, table 1, in
// torchvision's variant), so a step has 24.3 GFLOP. With 16-bit maps and fused batch norm a step
// moves about 334 MB.
TEST(StepWork, OfResnet50IsWhatIsKnown) {
  const Graph graph = build_graph(find_workload("resnet50"));
  const StepWork one = count_work(graph, 1, 2);
  const StepWork more = count_work(graph, 257, 2);
  EXPECT_NEAR((more.flops - one.flops) / 256, 24.3e9, 0.1e9);
  EXPECT_NEAR((more.bytes - one.bytes) / 256, 334e6, 20e6);
}

}  // namespace
}  // namespace syncopate::bench
