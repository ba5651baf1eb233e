// Accounts for the time of the workers of a virtual job.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "bench/virtual_clock/event_queue.h"
#include "ps/shard/stale_gradients.h"

namespace syncopate::bench {

// How one worker spent its time, and the bytes that it sent and received.
struct WorkerAccount {
  bool has_joined = false;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  VirtualTime compute{0};        // computation with its delays and pauses
  VirtualTime communication{0};  // messages in flight or waiting for a link
  VirtualTime peers{0};          // waiting for other workers and for batches
  VirtualTime servers{0};        // waiting for servers' updates; 0 if updates take no time
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::optional<ps::DroppedSteps> dropped{};  // nullopt if the job drops no gradients
  VirtualTime waited() const noexcept { return communication + peers + servers; }
  VirtualTime all() const noexcept { return compute + waited(); }
};

// Returns the sums of the steps, times and sent bytes in the accounts of all workers.
WorkerAccount sum_of(std::span<const WorkerAccount> workers);

}  // namespace syncopate::bench
