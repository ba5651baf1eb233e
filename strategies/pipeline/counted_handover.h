// The hand-over between stages in different tasks, as the receiver sees it: tensors in memory, and
// a count of those that have arrived. Under shared memory both tasks map tensors and count, and
// this is the whole hand-over; over TCP a communication thread receives and counts
// (link_exchange.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "strategies/cluster/membership.h"
#include "strategies/collective/work_progress.h"
#include "strategies/pipeline/handover.h"

namespace syncopate {

// What bounds the waits for other tasks. The references outlive the hand-overs.
struct WaitRules {
  const AbortReason& abort;  // why the job ends
  const Membership& membership;
  std::chrono::nanoseconds timeout;
};

// Returns the error for a wait that was interrupted by the end of the job. waited: "rank 0 waited
// for ...". Adds the reason unless it is the job's verdict, which names the task that failed: the
// caller of the run adds that one.
PeerError ended_wait(const Membership& membership, const std::string& waited,
                     const std::string& reason);

// Names for messages.
struct HandoverNames {
  std::string self;  // "rank 0"
  std::string peer;  // "rank 1 (host b, pid 77)"
  std::string what;  // what is handed over, "gradient"
};

class CountedHandover final : public Handover {
 public:
  // count: increases by one for each micro-batch of the run, modulo 2^32; 0 at first. It outlives
  // the object, as a word in the memory of the tensors does.
  CountedHandover(HandoverTensors tensors, std::atomic<std::uint32_t>& count,
                  const WaitRules& rules, HandoverNames names);

  Tensor memory(int micro_batch, std::int64_t samples) const override;
  void begin_step() override;
  void send(int micro_batch, std::int64_t samples) override;
  bool receive(int micro_batch, std::int64_t samples) override;
  // Does nothing: the job tells other tasks that this one has failed.
  void give_up() override {}

  const HandoverTensors& tensors() const noexcept { return tensors_; }
  const HandoverNames& names() const noexcept { return names_; }

 private:
  [[noreturn]] void throw_ended(int micro_batch) const;

  const HandoverTensors tensors_;
  std::atomic<std::uint32_t>& count_;
  const WaitRules rules_;
  const HandoverNames names_;
  const int spins_;
  std::uint32_t before_step_;  // the count at the beginning of the step
};

}  // namespace syncopate
