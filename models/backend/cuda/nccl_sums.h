// Sums by NCCL, of replicas that have a GPU each. The communicator is non-blocking: calls in
// progress are polled until a deadline. While the replica's thread waits for the device, a watch
// thread looks for errors and for sums that miss their deadline. On either, or on abort(), the
// communicator is aborted: its kernels end, so every wait ends, and check() throws the reason.
// Source: NVIDIA NCCL user guide, "Fault tolerance".
#pragma once

#include <chrono>
#include <memory>

#include "models/backend/cuda/bucket_sums.h"
#include "models/backend/cuda/nccl_table.h"

namespace syncopate::cuda {

// nccl must outlive the sums. The watch thread notices errors and abort() after watch_interval at
// the latest, unless the replica's thread notices them first. Throws DeviceError.
std::unique_ptr<BucketSums> make_nccl_sums(
    const DeviceRank& rank, const NcclTable& nccl,
    std::chrono::milliseconds watch_interval = std::chrono::milliseconds(100));

}  // namespace syncopate::cuda
