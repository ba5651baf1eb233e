// What sums the gradients of a job's replicas where they were computed, on GPUs: one object per
// local replica, made by the CUDA module, handed to its backend (CompileOptions) and kept by the
// strategy, which knows nothing else of it. Gradients never reach the host.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "models/tensor/buffer.h"

namespace syncopate {

// A replica among all of the job.
struct DeviceRank {
  int rank = 0;
  int size = 1;
  Device device;
  // How long a sum may take while everybody is alive.
  std::chrono::nanoseconds patience = std::chrono::seconds(600);
};

// One thread only, the replica's, but for abort(). Outlives the models that it was handed to.
class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;

  // The bytes of rank 0 reach all ranks.
  using Broadcast = std::function<void(std::span<std::byte>)>;
  // Every rank calls, once, before the first step. Throws PeerError, DeviceError.
  virtual void join(const Broadcast& broadcast) = 0;
  // Every rank calls when all is done; without it the others' sums may fail. Never waits for long.
  virtual void leave() noexcept = 0;
  // From any thread, and at once: whoever waits for a sum, now or later, throws PeerError(reason).
  virtual void abort(std::string_view reason) noexcept = 0;
};

}  // namespace syncopate
