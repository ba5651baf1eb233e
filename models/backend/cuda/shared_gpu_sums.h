// Sums of replicas that share one GPU: the last replica to come with a bucket starts the kernel
// that sums it for all, on a stream beside theirs; events put it behind everybody's backward and
// before everybody's update.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "models/backend/cuda/bucket_sums.h"

namespace syncopate::cuda {

// By rank; the replicas' threads use one each. Throws DeviceError.
std::vector<std::unique_ptr<BucketSums>> make_shared_gpu_sums(int device, int replicas,
                                                              std::chrono::nanoseconds patience);

}  // namespace syncopate::cuda
