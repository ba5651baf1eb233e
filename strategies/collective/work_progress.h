// Where a caller and its communication thread meet: all-reduces end in the order of their
// submission, one side counts them, the other one waits for the count. Keeps the time meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "models/base/deadline.h"

namespace syncopate {

class WorkProgress {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Outcome : std::uint8_t { kEnded, kOver, kLate };

  // The caller's thread. Whether `works` of them have ended; what is over never ends.
  Outcome wait(std::uint64_t works, const Deadline& patience) const;

  // The communication thread: `works` of the `submitted` have ended. `begun` is when the one after
  // the last that had ended was submitted.
  void end(std::uint64_t works, std::uint64_t submitted, Clock::time_point begun);

  // Any thread.
  std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }
  // Something failed: the caller wakes and looks for the reason, which was set before.
  void set_over() noexcept;
  // Time in which at least one was submitted and had not ended; without the stretch under way.
  std::chrono::nanoseconds under_way() const noexcept;

 private:
  void wake() noexcept;

  std::atomic<std::uint64_t> ended_{0};
  std::atomic<bool> over_{false};
  std::atomic<std::uint32_t> changes_{0};  // of the two: the caller sleeps on it
  std::atomic<std::int64_t> under_way_nanoseconds_{0};
  // The communication thread's: the stretch under way, if is_under_way_, and the end of the last.
  bool is_under_way_ = false;
  Clock::time_point stretch_begun_;
  Clock::time_point stretch_ended_;
};

}  // namespace syncopate
