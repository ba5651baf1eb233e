// Sums the gradients of a job's replicas on their GPUs, without a copy to the host. There is one
// collective per local replica: the CUDA module makes it, the strategy owns it, and the backend
// uses it (CompileOptions::device_collective).
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
  // The longest time that a sum of gradients may take while all replicas are alive.
  std::chrono::nanoseconds timeout = std::chrono::seconds(600);
};

// Sums the gradients of one replica with the gradients of all others. Only the replica's thread
// uses the collective, except for abort(). The collective must outlive the models that use it.
class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;

  // A function that overwrites a block of bytes on every rank with the bytes of rank 0.
  using Broadcast = std::function<void(std::span<std::byte>)>;
  // Connects the replica to all other replicas. broadcast: used to send the id of the connection
  // from rank 0 to all ranks. Called once by every rank, before the first step. Throws PeerError,
  // DeviceError, UsageError.
  virtual void join(const Broadcast& broadcast) = 0;
  // Ends the use of the collective. Every rank calls leave() after its last step; if a rank does
  // not, sums of the other ranks may fail. Does not block for long.
  virtual void leave() noexcept = 0;
  // Aborts all sums: every current and later wait for a sum throws PeerError(reason). May be called
  // from any thread and returns immediately.
  virtual void abort(std::string_view reason) noexcept = 0;
};

}  // namespace syncopate
