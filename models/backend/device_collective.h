// Sums the gradients of a job's replicas on their GPUs, without a copy to the host. There is one
// object per local replica. The CUDA module makes it, the strategy owns it, and the backend uses it
// (CompileOptions).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "models/tensor/buffer.h"

namespace syncopate {

// The place of a replica in the job.
struct DeviceRank {
  int rank = 0;
  int size = 1;
  Device device;
  // The time limit of a sum while all replicas are alive.
  std::chrono::nanoseconds timeout = std::chrono::seconds(600);
};

// Used by the thread of the replica, except abort(). It must outlive the models that use it.
class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;

  // Overwrites the bytes on every rank with the bytes of rank 0.
  using Broadcast = std::function<void(std::span<std::byte>)>;
  // Called once by every rank before the first step. Throws PeerError, DeviceError.
  virtual void join(const Broadcast& broadcast) = 0;
  // Called by every rank after its last step. If a rank does not call it, sums of other ranks may
  // fail. Does not block for long.
  virtual void leave() noexcept = 0;
  // Called from any thread; returns immediately. Every current and later wait for a sum throws
  // PeerError(reason).
  virtual void abort(std::string_view reason) noexcept = 0;
};

}  // namespace syncopate
