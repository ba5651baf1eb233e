#include "models/graph/program_plan.h"

#include <gtest/gtest.h>

#include "models/base/random.h"
#include "models/tensor/buffer.h"

namespace syncopate {
namespace {

TEST(MemoryPlan, ReusesMemoryAfterItsLastRead) {
  const MemoryPlan plan = plan_memory({{1024, 0, 1}, {1024, 2, 3}});
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.total_bytes, 1024U);
}

TEST(MemoryPlan, SeparatesBuffersThatShareAStep) {
  const MemoryPlan plan = plan_memory({{1024, 0, 2}, {1024, 2, 3}});
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.total_bytes, 2048U);
}

TEST(MemoryPlan, PutsASmallBufferIntoFreedMemory) {
  // Buffer 0 is in use in steps 0 and 1, so buffer 2, in use in steps 2 and 3, takes its place.
  // Buffer 1 is in use in steps 1 to 3.
  const MemoryPlan plan = plan_memory({{4096, 0, 1}, {2048, 1, 3}, {1024, 2, 3}});
  EXPECT_EQ(plan.offsets[2], plan.offsets[0]);
  EXPECT_EQ(plan.total_bytes, 6144U);
}

TEST(MemoryPlan, SeparatesBuffersOfRandomLifetimes) {
  const RandomStream random(7, 1);
  std::vector<BufferLifetime> buffers;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto first = static_cast<int>(random.below(3 * i, 50));
    buffers.push_back({random.below(3 * i + 1, 5000), first,
                       first + static_cast<int>(random.below(3 * i + 2, 20))});
  }
  const MemoryPlan plan = plan_memory(buffers);
  for (std::size_t a = 0; a < buffers.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % kAlignmentBytes, 0U);
    EXPECT_LE(plan.offsets[a] + buffers[a].size_bytes, plan.total_bytes);
    for (std::size_t b = 0; b < a; ++b) {
      if (buffers[a].last < buffers[b].first || buffers[b].last < buffers[a].first) continue;
      const bool apart = plan.offsets[a] + buffers[a].size_bytes <= plan.offsets[b] ||
                         plan.offsets[b] + buffers[b].size_bytes <= plan.offsets[a];
      EXPECT_TRUE(apart || buffers[a].size_bytes == 0 || buffers[b].size_bytes == 0)
          << a << " and " << b;
    }
  }
}

}  // namespace
}  // namespace syncopate
