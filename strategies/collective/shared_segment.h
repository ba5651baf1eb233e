// Memory that the tasks of one host map together, handed over as a descriptor: no name that a kill
// leaves behind, no limit of /dev/shm, and proof that they really share a host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/tensor/tensor.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

// Every task calls. Nothing unless all tasks can map one segment, and then on every task. This
// task's own ranks' memory is reserved when it returns, zeroed.
// header_bytes: at the segment's beginning, for all; block_elements: f32, of each rank.
// patience: for one another, from when all have called.
// Throws PeerError; UsageError, on every task, when the tasks' networks differ in size;
// OutOfMemoryError when the machine's memory does not hold it.
struct SharedSegment {
  std::shared_ptr<Buffer> memory;
  std::vector<Tensor> blocks;  // by rank
};
std::unique_ptr<SharedSegment> share_segment(Membership& membership, std::size_t header_bytes,
                                             std::int64_t block_elements,
                                             std::chrono::nanoseconds patience);

}  // namespace syncopate
