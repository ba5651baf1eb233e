// Tests when the stages of a pipeline compute under the virtual clock, against formulas.
#include "bench/virtual_clock/pipeline_times.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "strategies/step_trailer.h"

namespace syncopate::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

PipelineLoad load_of_stages(int stages, int micro_batches, std::int64_t output_bytes = 0) {
  const auto n = static_cast<std::size_t>(stages);
  return {.work = std::vector<double>(n, 1.0 / stages),
          .output_bytes = std::vector<std::int64_t>(n - 1, output_bytes),
          .micro_batches = micro_batches};
}

// Returns the end of a step that begins at 0. times: of each stage for a micro-batch.
VirtualTime end_of(const PipelineLoad& load, const std::vector<VirtualTime>& times,
                   const Link& link = {}) {
  std::vector<std::vector<VirtualTime>> computation;
  computation.reserve(times.size());
  for (const VirtualTime time : times) {
    computation.emplace_back(static_cast<std::size_t>(load.micro_batches), time);
  }
  return end_of_pipeline_step(load, link, std::vector<VirtualTime>(times.size()), computation);
}

// Of M + N - 1 times of a micro-batch, each stage computes in M: the idle share is (N-1)/(M+N-1).
TEST(PipelineStep, OfEqualStagesIsIdleWhileThePipelineFillsAndDrains) {
  for (const int stages : {1, 2, 3, 4, 8}) {
    for (const int micro_batches : {1, 2, 4, 16}) {
      const std::vector<VirtualTime> times(static_cast<std::size_t>(stages), milliseconds(3));
      EXPECT_EQ(end_of(load_of_stages(stages, micro_batches), times),
                (micro_batches + stages - 1) * milliseconds(3))
          << stages << " stages, " << micro_batches << " micro-batches";
    }
  }
}

TEST(PipelineStep, OfUnequalStagesIsThatOfTheSlowest) {
  EXPECT_EQ(end_of(load_of_stages(2, 1), {milliseconds(3), milliseconds(9)}), milliseconds(12));
  // The first stage adds its forward pass of the first micro-batch and its last backward pass.
  EXPECT_EQ(end_of(load_of_stages(2, 10), {milliseconds(3), milliseconds(9)}), milliseconds(93));
}

TEST(PipelineStep, WaitsForTensorsOnTheirWay) {
  const Link link{.delay_seconds = 1e-3, .bytes_per_second = 1e6};
  const PipelineLoad load = load_of_stages(2, 1, 2000);  // 2 ms on the link
  // The output and the gradient take 3 ms each; two messages of half a report end the step.
  const VirtualTime reports = 2 * (milliseconds(1) + microseconds(2 * kTrailerElements));
  EXPECT_EQ(end_of(load, {milliseconds(3), milliseconds(9)}, link),
            milliseconds(12 + 2 * 3) + reports);
}

// The first stage has two micro-batches in flight. A micro-batch is in flight for 13 ms: 2 ms and 4
// ms of computation in each stage, and 0.5 ms of each tensor. So one ends every 6.5 ms.
TEST(PipelineStep, HidesHalfOfTheTensorsBehindTheOtherMicroBatchInFlight) {
  const Link link{.delay_seconds = 0.0, .bytes_per_second = 1e6};
  const VirtualTime reports = ring_all_reduce_time(link, 2, 4 * kTrailerElements);
  const PipelineLoad load = load_of_stages(2, 20, 500);
  EXPECT_EQ(end_of(load, {milliseconds(6), milliseconds(6)}, link) - reports,
            20 * microseconds(6500) + milliseconds(6));
}

TEST(PipelineStep, CountsTheBytesOfBothNeighbours) {
  const PipelineLoad load = load_of_stages(3, 4, 100);
  EXPECT_EQ(bytes_handed_over(load, 0), 400);
  EXPECT_EQ(bytes_handed_over(load, 1), 800);
  EXPECT_EQ(bytes_handed_over(load, 2), 400);
}

}  // namespace
}  // namespace syncopate::bench
