// A DeviceCollective as the backend sees it: buckets of a gradient arena, summed beside what
// computes.
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "models/backend/device_collective.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate::cuda {

// One thread only, but for abort(). All may throw DeviceError, and PeerError once it is known that
// a sum will not come.
class BucketSums : public DeviceCollective {
 public:
  // Before the first step: where the replica's gradients lie, and in which slices they are summed.
  virtual void attach(float* gradients, std::span<const Bucket> buckets) = 0;
  // What writes the bucket's gradients has been started on `compute`: behind it, and beside what
  // `compute` does next, they become the sums. The same order on every rank.
  virtual void start(BucketId bucket, cudaStream_t compute) = 0;
  // What `compute` does from now on finds the sums of all buckets, each started once.
  virtual void finish(cudaStream_t compute) = 0;
  // After a wait for the device: it may have ended because sums were given up.
  virtual void check() = 0;
  // Nothing reads or writes the gradients any more when it returns.
  virtual void detach() noexcept = 0;
};

}  // namespace syncopate::cuda
