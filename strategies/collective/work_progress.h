// The state that the caller and the communication thread of a collective share: how many
// all-reduces have ended, why the collective was aborted, and how long all-reduces were in
// progress.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "models/base/deadline.h"
#include "ps/net/wake_event.h"
#include "strategies/collective/collective.h"

namespace syncopate {

// After this number of attempts to move bytes without success, a communication thread sleeps in
// poll(). The attempts together take about 20 us, since waking a sleeping core takes 10 to 25 us.
inline constexpr int kIdleAttempts = 30;

// The reason why a collective was aborted. Only the first reason is stored. Every wait that begins
// later, or that the abort interrupts, throws PeerError with this reason. Thread-safe.
class AbortReason {
 public:
  // Sets the reason, unless a reason is set already.
  void set(std::string_view reason) noexcept;
  bool is_set() const noexcept { return is_set_.load(std::memory_order_acquire); }
  std::string text() const;
  // Throws PeerError(text()) if a reason is set.
  void throw_if_set() const;
  // Returns a descriptor for poll(2) that becomes readable when a reason is set.
  int descriptor() const noexcept { return event_.descriptor(); }

 private:
  WakeEvent event_;
  std::atomic<bool> is_set_{false};
  mutable std::mutex mutex_;
  std::string text_;  // the reason; guarded by mutex_
};

// Counts ended all-reduces, which end in the order of their submission. The communication thread
// increases the count, and the caller waits until the count reaches a value.
class WorkProgress {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Outcome : std::uint8_t { kEnded, kAborted, kLate };

  // Waits until `works` all-reduces have ended, abort() is called or the deadline passes. Called by
  // the caller's thread.
  Outcome wait(std::uint64_t works, const Deadline& deadline) const;

  // Records that `works` of the `submitted` all-reduces have ended. `begun` is the submission time
  // of the first all-reduce that had not ended at the previous call. Called by the communication
  // thread.
  void end(std::uint64_t works, std::uint64_t submitted, Clock::time_point begun);

  // Any thread may call the functions from here on.
  std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  bool is_aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }
  // Wakes the caller because of a failure. The reason must have been stored in an AbortReason
  // before.
  void abort() noexcept;
  // Returns the total time during which at least one all-reduce was in progress. A period that has
  // not ended yet is not included.
  std::chrono::nanoseconds under_way() const noexcept;

 private:
  void wake() noexcept;

  std::atomic<std::uint64_t> ended_{0};
  std::atomic<bool> aborted_{false};
  std::atomic<std::uint32_t> changes_{0};  // the futex on which the caller sleeps
  std::atomic<std::int64_t> under_way_nanoseconds_{0};
  // is_under_way_ says whether all-reduces are in progress. period_begun_ is when the latest period
  // with all-reduces in progress began, period_ended_ when the last complete period ended. Used by
  // the communication thread.
  bool is_under_way_ = false;
  Clock::time_point period_begun_;
  Clock::time_point period_ended_;
};

// Measures the CommunicationTimes of a collective that has no communication thread. One thread
// only.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Measures a wait: adds the lifetime of the Exposed object to the exposed time, which is the time
  // that the caller waits for communication.
  class Exposed {
   public:
    explicit Exposed(Stopwatch& watch) : watch_(watch), begun_(Clock::now()) {}
    Exposed(const Exposed&) = delete;
    Exposed& operator=(const Exposed&) = delete;
    ~Exposed() { watch_.times_.exposed_seconds += since(begun_); }

   private:
    Stopwatch& watch_;
    Clock::time_point begun_;
  };

  // Measures a blocking operation: adds the lifetime of the Blocking object to the exposed time
  // and, unless an all-reduce is in progress, to the time of communication.
  class Blocking {
   public:
    explicit Blocking(Stopwatch& watch)
        : watch_(watch), exposed_(watch), begins_(!watch.under_way_) {
      if (begins_) watch_.begin();
    }
    Blocking(const Blocking&) = delete;
    Blocking& operator=(const Blocking&) = delete;
    ~Blocking() {
      if (begins_) watch_.end();
    }

   private:
    Stopwatch& watch_;
    Exposed exposed_;
    bool begins_;
  };

  // Measure the time of communication. begin() must be called for every operation; it starts a
  // measurement unless another operation is in progress. end() ends the measurement, and must be
  // called when the last operation in progress has ended.
  void begin() {
    if (under_way_) return;
    under_way_ = true;
    begun_ = Clock::now();
  }
  void end() {
    if (under_way_) times_.under_way_seconds += since(begun_);
    under_way_ = false;
  }
  CommunicationTimes times() const noexcept { return times_; }

 private:
  static double since(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
  }

  CommunicationTimes times_;
  bool under_way_ = false;
  Clock::time_point begun_;
};

}  // namespace syncopate
