// A memory segment that the tasks of one host map together. Rank 0's task creates it and hands its
// file descriptor to the other tasks over a Unix-domain socket. So a killed job leaves no named
// segment behind, the size limit of /dev/shm does not apply, and a task that receives the
// descriptor certainly runs on the same host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/tensor/tensor.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

struct SharedSegment {
  std::shared_ptr<Buffer> memory;
  std::vector<Tensor> blocks;  // by rank, each a vector of f32
};

// Maps the segment; every task calls it. Returns null on every task unless all tasks can map one
// segment. The memory of this task's ranks is zeroed and reserved. header_bytes: a common area at
// the beginning of the segment. block_elements: by rank. timeout: for the other tasks, counted from
// when all have called. Throws PeerError; UsageError on every task when the tasks' networks differ
// in size; OutOfMemoryError when the machine has not enough memory.
std::unique_ptr<SharedSegment> share_segment(Membership& membership, std::size_t header_bytes,
                                             std::span<const std::int64_t> block_elements,
                                             std::chrono::nanoseconds timeout);

}  // namespace syncopate
