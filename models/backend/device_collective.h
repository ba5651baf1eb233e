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

// The place of a replica in the job, and its device.
struct DeviceRank {
  int rank = 0;
  int size = 1;
  Device device;
  // The time limit of a sum of gradients while all replicas are alive.
  std::chrono::nanoseconds timeout = std::chrono::seconds(600);
};

// A DeviceCollective sums the gradients of one replica with the gradients of all others. It is used
// by the replica's thread, except abort(), and must outlive the models that sum through it.
class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;

  // Overwrites the bytes of a block of device memory on every rank with the bytes of rank 0.
  using Broadcast = std::function<void(std::span<std::byte>)>;
  // Connects the replica to all others; `broadcast` exchanges the id of the connection. Called once
  // by every rank, before the first step. Throws PeerError, DeviceError, UsageError.
  virtual void join(const Broadcast& broadcast) = 0;
  // Ends the use of the collective. Called by every rank after its last step; sums of other ranks
  // may fail if a rank does not call it. Does not block for long.
  virtual void leave() noexcept = 0;
  // Aborts all sums. Called from any thread; returns immediately. Every current and later wait for
  // a sum throws PeerError(reason).
  virtual void abort(std::string_view reason) noexcept = 0;
};

}  // namespace syncopate
