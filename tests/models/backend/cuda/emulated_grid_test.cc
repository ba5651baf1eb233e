// Tests that the emulated grid detects the mistakes it exists for.
#include "tests/models/backend/cuda/emulated_grid.h"

#include <gtest/gtest.h>

#include <vector>

#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

constexpr unsigned kThreads = 64;

// In this kernel each thread reads what its neighbour wrote, which is correct only with the
// barrier.
void neighbour_kernel(bool barrier, unsigned* out) {
  static unsigned shared[kThreads];
  shared[threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
  if (barrier) __syncthreads();
  const unsigned neighbour = shared[(threadIdx.x + 1) % kThreads];
  if (barrier) __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = neighbour;
}

std::vector<unsigned> neighbours(bool barrier, EmulatedOrder order) {
  const EmulatedOrderScope scope(order);
  std::vector<unsigned> out(2 * kThreads);
  launch({"neighbour", dim3(2), kThreads, nullptr}, neighbour_kernel, barrier, out.data());
  return out;
}

TEST(EmulatedGrid, ShowsThreadsTheWritesOfOthersBeforeTheBarrier) {
  const std::vector<unsigned> out = neighbours(true, EmulatedOrder::kForward);
  for (unsigned i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], i / kThreads * 1000 + (i + 1) % kThreads);
  }
  EXPECT_EQ(out, neighbours(true, EmulatedOrder::kBackward));
}

TEST(EmulatedGrid, GivesOtherResultsInReverseOrderWhereABarrierIsMissing) {
  EXPECT_NE(neighbours(false, EmulatedOrder::kForward),
            neighbours(false, EmulatedOrder::kBackward));
}

void last_block_kernel(unsigned* out) { *out = blockIdx.y * gridDim.x + blockIdx.x; }

TEST(EmulatedGrid, RunsBlocksInTheRequestedOrder) {
  unsigned last = 99;
  launch({"last_block", dim3(3, 2), 1, nullptr}, last_block_kernel, &last);
  EXPECT_EQ(last, 5U);
  const EmulatedOrderScope scope(EmulatedOrder::kBackward);
  launch({"last_block", dim3(3, 2), 1, nullptr}, last_block_kernel, &last);
  EXPECT_EQ(last, 0U);
}

void early_end_kernel(unsigned threads_that_end) {
  if (threadIdx.x < threads_that_end) return;
  __syncthreads();
}

TEST(EmulatedGrid, RefusesABarrierThatSomeThreadsNeverReach) {
  EXPECT_THROW(launch({"early_end", dim3(1), kThreads, nullptr}, early_end_kernel, 1U),
               InternalError);
  EXPECT_NO_THROW(launch({"early_end", dim3(1), kThreads, nullptr}, early_end_kernel, 0U));
}

TEST(EmulatedGrid, RefusesGridsThatADeviceRefuses) {
  unsigned last = 0;
  for (const dim3 blocks : {dim3(0), dim3(1, 65536)}) {
    EXPECT_THROW(launch({"last_block", blocks, 1, nullptr}, last_block_kernel, &last), DeviceError);
  }
  EXPECT_THROW(launch({"last_block", dim3(1), 1025, nullptr}, last_block_kernel, &last),
               DeviceError);
}

}  // namespace
}  // namespace syncopate::cuda
