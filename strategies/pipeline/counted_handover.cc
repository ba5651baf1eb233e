#include "strategies/pipeline/counted_handover.h"

#include <fmt/format.h>
#include <immintrin.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/shared_memory_file.h"

namespace syncopate {
namespace {

// A waiting stage polls for about 50 us before it sleeps, unless there are more tasks than CPUs:
// polling would keep the awaited stage from running.
constexpr int kHandoverSpins = 1500;
constexpr int kHandoverSpinsWhenCrowded = 20;
// How often a sleeping stage checks whether the job has failed.
constexpr std::chrono::milliseconds kLongestHandoverSleep(50);

}  // namespace

CountedHandover::CountedHandover(HandoverTensors tensors, std::atomic<std::uint32_t>& count,
                                 const WaitRules& rules, HandoverNames names)
    : tensors_(std::move(tensors)),
      count_(count),
      rules_(rules),
      names_(std::move(names)),
      spins_(std::cmp_greater(rules.membership.members().size(), sysconf(_SC_NPROCESSORS_ONLN))
                 ? kHandoverSpinsWhenCrowded
                 : kHandoverSpins),
      before_step_(-static_cast<std::uint32_t>(tensors_.micro_batches)) {}

Tensor CountedHandover::memory(int micro_batch, std::int64_t samples) const {
  return tensors_.of(micro_batch).rows(0, samples);
}

void CountedHandover::begin_step() {
  before_step_ += static_cast<std::uint32_t>(tensors_.micro_batches);
}

void CountedHandover::send(int /*micro_batch*/, std::int64_t /*samples*/) {
  count_.fetch_add(1, std::memory_order_release);
  futex_wake_all(count_);
}

bool CountedHandover::receive(int micro_batch, std::int64_t /*samples*/) {
  const std::uint32_t awaited = before_step_ + static_cast<std::uint32_t>(micro_batch) + 1;
  const auto has_arrived = [&](std::uint32_t count) {
    return static_cast<std::int32_t>(count - awaited) >= 0;
  };
  for (int spin = 0; spin < spins_; ++spin) {
    if (has_arrived(count_.load(std::memory_order_acquire))) return true;
    _mm_pause();
  }
  const Deadline deadline = Deadline::after(rules_.timeout);
  for (;;) {
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    if (has_arrived(count)) return true;
    if (rules_.abort.is_set()) throw_ended(micro_batch);
    if (deadline.passed()) {
      throw PeerError(fmt::format(
          "{} waited {} for the {} of micro-batch {} from {}, which is alive and has not sent it; "
          "is it stopped, or busy?",
          names_.self, in_seconds(deadline.timeout()), names_.what, micro_batch, names_.peer));
    }
    futex_wait(count_, count,
               std::min<std::chrono::nanoseconds>(kLongestHandoverSleep, deadline.remaining()));
  }
}

void CountedHandover::throw_ended(int micro_batch) const {
  throw ended_wait(rules_.membership,
                   fmt::format("{} waited for the {} of micro-batch {} from {}", names_.self,
                               names_.what, micro_batch, names_.peer),
                   rules_.abort.text());
}

PeerError ended_wait(const Membership& membership, const std::string& waited,
                     const std::string& reason) {
  const bool is_verdict = membership.failure() == std::optional(reason);
  return PeerError(is_verdict ? waited : waited + ": " + reason);
}

}  // namespace syncopate
