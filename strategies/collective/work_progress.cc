#include "strategies/collective/work_progress.h"

#include <immintrin.h>

#include <algorithm>

#include "models/base/shared_memory_file.h"

namespace syncopate {
namespace {

constexpr int kSpins = 500;  // about 20 us: what waking a sleeping core takes

}  // namespace

WorkProgress::Outcome WorkProgress::wait(std::uint64_t works, const Deadline& patience) const {
  for (int spin = 0;; ++spin) {
    const std::uint32_t changes = changes_.load(std::memory_order_acquire);
    if (is_over()) return Outcome::kOver;
    if (ended() >= works) return Outcome::kEnded;
    if (spin < kSpins) {
      _mm_pause();
      continue;
    }
    if (patience.passed()) return Outcome::kLate;
    futex_wait(changes_, changes, patience.remaining());
  }
}

void WorkProgress::end(std::uint64_t works, std::uint64_t submitted, Clock::time_point begun) {
  // A stretch lasts until everything that was submitted has ended.
  if (!is_under_way_) stretch_begun_ = std::max(begun, stretch_ended_);
  is_under_way_ = works != submitted;
  if (!is_under_way_) {
    stretch_ended_ = Clock::now();
    under_way_nanoseconds_ += std::chrono::nanoseconds(stretch_ended_ - stretch_begun_).count();
  }
  ended_.store(works, std::memory_order_release);
  wake();
}

void WorkProgress::set_over() noexcept {
  over_.store(true, std::memory_order_release);
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
