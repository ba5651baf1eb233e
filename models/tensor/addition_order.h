// In which order the replicas' gradients are added: a function of the element's index in the arena
// and of their number alone. So whoever sums, collective or shard, gets the same bits, whatever the
// buckets, the transport or the timing.
#pragma once

#include <cstdint>

namespace syncopate {

// Block b is summed from rank (b + 1) mod n onwards, one rank after the other.
inline constexpr std::int64_t kBlockElements = 16384;

// The rank whose addend comes first for arena element `index`, of n ranks. Negative indices, before
// the arena's beginning, belong to block -1: from rank 0 onwards.
constexpr int first_addend(std::int64_t index, int n) noexcept {
  const std::int64_t block =
      index >= 0 ? index / kBlockElements : -((-index + kBlockElements - 1) / kBlockElements);
  return static_cast<int>(((block + 1) % n + n) % n);
}

}  // namespace syncopate
