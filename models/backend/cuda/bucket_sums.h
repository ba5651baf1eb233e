// A DeviceCollective as the CUDA backend uses it: it sums the buckets of a gradient arena over the
// replicas while the device computes.
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "models/backend/device_collective.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate::cuda {

// Every function but abort() is called by one thread only. All functions may throw DeviceError, and
// PeerError once a sum is known to have failed.
class BucketSums : public DeviceCollective {
 public:
  // attach() is called before the first step with the address of the replica's gradients and the
  // slices in which they are summed.
  virtual void attach(float* gradients, std::span<const Bucket> buckets) = 0;
  // Replaces a bucket's gradients by their sums. The sum starts after the work that `compute` has
  // been given so far and runs beside its later work. All ranks start the buckets in one order.
  virtual void start(BucketId bucket, cudaStream_t compute) = 0;
  // Makes later work on `compute` wait for the sums of all buckets, each of which was started once.
  virtual void finish(cudaStream_t compute) = 0;
  // Throws if sums were aborted. Is called after each wait for the device, because an abort ends
  // the wait, too.
  virtual void check() = 0;
  // Returns once no sum reads or writes the replica's gradients any more.
  virtual void detach() noexcept = 0;
};

}  // namespace syncopate::cuda
