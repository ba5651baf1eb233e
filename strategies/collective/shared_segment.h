// A memory segment that all tasks on one host map. The task of rank 0 creates the segment and sends
// its file descriptor to the other tasks over a Unix-domain socket. So a killed job leaves no named
// segment behind, the size limit of /dev/shm does not apply, and a task that receives the
// descriptor is certainly on the same host.
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

// Maps the segment. Every task must call it. Returns null on every task if any task cannot map the
// segment. Zeroes and reserves the memory of this task's ranks. The segment begins with a common
// area of `header_bytes`; then comes a block of block_elements[r] elements for each rank r.
// `timeout` limits the wait for the other tasks after all tasks have called the function. Throws
// PeerError. Throws UsageError on every task if the tasks' networks differ in size. Throws
// OutOfMemoryError if the machine does not have enough memory.
std::unique_ptr<SharedSegment> share_segment(Membership& membership, std::size_t header_bytes,
                                             std::span<const std::int64_t> block_elements,
                                             std::chrono::nanoseconds timeout);

}  // namespace syncopate
