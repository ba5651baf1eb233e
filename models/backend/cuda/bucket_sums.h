// The part of a DeviceCollective that the CUDA backend uses: sums the buckets of a gradient arena
// over the replicas while the device computes.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "models/backend/device_collective.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate::cuda {

// Sums one replica's gradients with the gradients of all others. All functions except abort() are
// called by one thread only. They may throw DeviceError, and PeerError after a sum has failed.
class BucketSums : public DeviceCollective {
 public:
  // Sets the device address of the replica's gradients and the slices (buckets) to sum. Called
  // before the first step.
  virtual void attach(float* gradients, std::span<const Bucket> buckets) = 0;
  // Replaces the gradients of a bucket by their sums over the replicas. The sum starts after the
  // work already on the stream `compute`, and runs in parallel with later work on `compute`. All
  // ranks must start the buckets in the same order.
  virtual void start(BucketId bucket, cudaStream_t compute) = 0;
  // Makes later work on `compute` wait for the sums of all buckets. start() must have been called
  // once for every bucket.
  virtual void finish(cudaStream_t compute) = 0;
  // Throws PeerError if the sums were aborted. The caller calls check() after each wait for the
  // device, because such a wait ends when the device has finished and also when sums are aborted.
  virtual void check() = 0;
  // Waits until no sum reads or writes the replica's gradients any more.
  virtual void detach() noexcept = 0;
};

// Makes the BucketSums of replicas that share one GPU: one object per rank, used by the thread of
// that replica. When the last replica starts a bucket, it launches the kernel that sums the bucket
// for all replicas, on a separate stream. Events order this kernel after the backward pass and
// before the update of every replica. Throws DeviceError. For replicas on several GPUs, see
// nccl_sums.h.
std::vector<std::unique_ptr<BucketSums>> make_shared_gpu_sums(int device, int replicas,
                                                              std::chrono::nanoseconds timeout);

}  // namespace syncopate::cuda
