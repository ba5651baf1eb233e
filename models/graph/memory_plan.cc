#include "models/graph/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/tensor/buffer.h"

namespace syncopate {

MemoryPlan plan_memory(const std::vector<BufferLifetime>& buffers) {
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return buffers[a].size_bytes > buffers[b].size_bytes;
  });

  std::vector<std::size_t> placed;
  for (const std::size_t i : order) {
    const BufferLifetime& buffer = buffers[i];
    const std::size_t size =
        (buffer.size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
    if (size == 0) continue;
    std::vector<std::pair<std::size_t, std::size_t>> taken;  // [begin, end)
    for (const std::size_t other : placed) {
      const BufferLifetime& life = buffers[other];
      if (life.first > buffer.last || life.last < buffer.first) continue;
      taken.emplace_back(plan.offsets[other], plan.offsets[other] + life.size_bytes);
    }
    std::ranges::sort(taken);
    std::size_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + size <= begin) break;
      const std::size_t next = (end + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
      offset = std::max(offset, next);
    }
    plan.offsets[i] = offset;
    plan.total_bytes = std::max(plan.total_bytes, offset + size);
    placed.push_back(i);
  }
  return plan;
}

}  // namespace syncopate
