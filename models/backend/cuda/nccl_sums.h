// Sums by NCCL, of replicas that have a GPU each. A communicator that does not block: what is under
// way is asked for until a deadline, and a thread of its own watches for errors and for sums that
// do not come while the replica's waits for the device. When one shows, or abort() is called, the
// communicator is aborted: its kernels end, so does every wait, and check() says why.
// Source: NVIDIA NCCL user guide, "Fault tolerance".
#pragma once

#include <chrono>
#include <memory>

#include "models/backend/cuda/bucket_sums.h"
#include "models/backend/cuda/nccl_table.h"

namespace syncopate::cuda {

// nccl outlives it. Errors and abort() are noticed after watch_interval at the latest, where the
// replica's thread is not the first. Throws DeviceError.
std::unique_ptr<BucketSums> make_nccl_sums(
    const DeviceRank& rank, const NcclTable& nccl,
    std::chrono::milliseconds watch_interval = std::chrono::milliseconds(100));

}  // namespace syncopate::cuda
