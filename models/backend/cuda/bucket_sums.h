// A DeviceCollective as the CUDA backend uses it: it sums the buckets of a gradient arena over the
// replicas while the device computes.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "models/backend/device_collective.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate::cuda {

// BucketSums sums one replica's gradients with the gradients of the others. Its functions except
// abort() are called by one thread only. They may throw DeviceError, and PeerError once a sum has
// failed.
class BucketSums : public DeviceCollective {
 public:
  // Sets the device address of the replica's gradients and the slices (buckets) to sum. Called
  // before the first step.
  virtual void attach(float* gradients, std::span<const Bucket> buckets) = 0;
  // Replaces a bucket's gradients by their sums. The sum starts after the work that `compute` has
  // been given so far and runs beside its later work. All ranks start the buckets in one order.
  virtual void start(BucketId bucket, cudaStream_t compute) = 0;
  // Makes later work on `compute` wait for the sums of all buckets. Each sum was started once.
  virtual void finish(cudaStream_t compute) = 0;
  // Throws PeerError if the sums were aborted. The caller checks after each wait for the device,
  // because the wait ends both when the device has finished and when sums are aborted.
  virtual void check() = 0;
  // Returns once no sum reads or writes the replica's gradients any more.
  virtual void detach() noexcept = 0;
};

// Makes the sums of gradients of replicas that share one GPU: one object per rank, used by that
// replica's thread. The last replica to reach a bucket starts the kernel that sums it for all, on a
// stream beside theirs; events order the kernel after the backward pass and before the update of
// every replica. Throws DeviceError. The sums over several GPUs are made by nccl_sums.h.
std::vector<std::unique_ptr<BucketSums>> make_shared_gpu_sums(int device, int replicas,
                                                              std::chrono::nanoseconds timeout);

}  // namespace syncopate::cuda
