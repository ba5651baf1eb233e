// Sums the gradients of replicas that share one GPU. The last replica to reach a bucket starts the
// kernel that sums it for all, on a stream beside theirs; events order the kernel after the
// backward pass and before the update of every replica.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "models/backend/cuda/bucket_sums.h"

namespace syncopate::cuda {

// Returns one object per rank, used by that replica's thread to sum gradients. Throws DeviceError.
std::vector<std::unique_ptr<BucketSums>> make_shared_gpu_sums(int device, int replicas,
                                                              std::chrono::nanoseconds patience);

}  // namespace syncopate::cuda
