#include "strategies/collective/work_progress.h"

#include <immintrin.h>

#include <algorithm>

#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"

namespace syncopate {
namespace {

constexpr int kProgressSpins = 500;  // about 20 us, the time that waking a sleeping core takes

}  // namespace

void AbortReason::set(std::string_view reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (is_set_.load(std::memory_order_relaxed)) return;
    text_ = reason;
    is_set_.store(true, std::memory_order_release);
  }
  event_.notify();
}

std::string AbortReason::text() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

void AbortReason::throw_if_set() const {
  if (is_set()) throw PeerError(text());
}

WorkProgress::Outcome WorkProgress::wait(std::uint64_t works, const Deadline& deadline) const {
  for (int spin = 0;; ++spin) {
    const std::uint32_t changes = changes_.load(std::memory_order_acquire);
    if (is_aborted()) return Outcome::kAborted;
    if (ended() >= works) return Outcome::kEnded;
    if (spin < kProgressSpins) {
      _mm_pause();
      continue;
    }
    if (deadline.passed()) return Outcome::kLate;
    futex_wait(changes_, changes, deadline.remaining());
  }
}

void WorkProgress::end(std::uint64_t works, std::uint64_t submitted, Clock::time_point begun) {
  if (!is_under_way_) period_begun_ = std::max(begun, period_ended_);
  is_under_way_ = works != submitted;
  if (!is_under_way_) {
    period_ended_ = Clock::now();
    under_way_nanoseconds_ += std::chrono::nanoseconds(period_ended_ - period_begun_).count();
  }
  ended_.store(works, std::memory_order_release);
  wake();
}

void WorkProgress::abort() noexcept {
  aborted_.store(true, std::memory_order_release);
  wake();
}

std::chrono::nanoseconds WorkProgress::under_way() const noexcept {
  return std::chrono::nanoseconds(under_way_nanoseconds_.load());
}

void WorkProgress::wake() noexcept {
  changes_.fetch_add(1, std::memory_order_acq_rel);
  futex_wake_all(changes_);
}

}  // namespace syncopate
