// A hand-over between stages in different tasks, as the receiver sees it: tensors in memory, and a
// count of the tensors that have arrived. With shared memory, both tasks map the tensors and the
// count, and the sender increments the count. Over TCP, a communication thread receives the tensors
// and increments the count (link_exchange.h).
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

// What ends a wait for another task: the wait throws when `abort` is set, or after `timeout`. The
// referenced objects must outlive the hand-overs.
struct WaitRules {
  const AbortReason& abort;  // set when the job ends, with the reason
  const Membership& membership;
  std::chrono::nanoseconds timeout;
};

// Returns the error for a wait that was interrupted by the end of the job. The message is `waited`,
// such as "rank 0 waited for ...", followed by `reason`. If `reason` is the membership's verdict
// (Membership::failure()), `reason` is left out, because the caller adds the verdict.
PeerError ended_wait(const Membership& membership, const std::string& waited,
                     const std::string& reason);

// Names for use in error messages.
struct HandoverNames {
  std::string self;  // "rank 0"
  std::string peer;  // "rank 1 (host b, pid 77)"
  std::string what;  // what is handed over, such as "gradient"
};

class CountedHandover final : public Handover {
 public:
  // `count` is the number of micro-batches handed over since the start of training, modulo 2^32.
  // The count must outlive the object; in shared memory it is a word beside the tensors.
  CountedHandover(HandoverTensors tensors, std::atomic<std::uint32_t>& count,
                  const WaitRules& rules, HandoverNames names);

  Tensor memory(int micro_batch, std::int64_t samples) const override;
  void begin_step() override;
  void send(int micro_batch, std::int64_t samples) override;
  bool receive(int micro_batch, std::int64_t samples) override;
  // Does nothing, because the membership reports the failure of this task to the other tasks.
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
