// Places buffers with known lifetimes in one block, so that a step allocates nothing and memory
// that is no longer read is used again.
#pragma once

#include <cstddef>
#include <vector>

namespace syncopate {

// Alive from step `first` to step `last` of the program, both included.
struct BufferLifetime {
  std::size_t size_bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // of each buffer, aligned to kAlignmentBytes
  std::size_t total_bytes = 0;
};

// Two buffers whose lifetimes meet never overlap. Greedy: largest first, at the lowest offset that
// is free for its whole life. Source: Pisarchyk and Lee 2020, "Efficient memory management for deep
// neural net inference".
MemoryPlan plan_memory(const std::vector<BufferLifetime>& buffers);

}  // namespace syncopate
