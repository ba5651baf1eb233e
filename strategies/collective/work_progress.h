// What a caller and the communication thread of a collective share: how many all-reduces have
// ended, why the collective was aborted, and how long all-reduces were in progress.
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

// How often a communication thread tries to move bytes before it sleeps in poll(): for about 20 us,
// because waking a sleeping core takes 10 to 25 us.
inline constexpr int kIdleAttempts = 30;

// The reason why a collective was aborted. The first reason is kept, and every wait that begins
// after it or is interrupted by it throws it. Thread-safe.
class AbortReason {
 public:
  // Sets the reason why the collective is aborted, unless one is set already.
  void set(std::string_view reason) noexcept;
  bool is_set() const noexcept { return is_set_.load(std::memory_order_acquire); }
  std::string text() const;
  // Throws PeerError(text()) when a reason to abort the collective is set.
  void throw_if_set() const;
  // Becomes readable when a reason to abort is set, for poll(2).
  int descriptor() const noexcept { return event_.descriptor(); }

 private:
  WakeEvent event_;
  std::atomic<bool> is_set_{false};
  mutable std::mutex mutex_;
  std::string text_;  // the reason; guarded by mutex_
};

// Counts ended all-reduces, which end in the order of their submission. The communication thread
// increments the count and the caller waits for it.
class WorkProgress {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Outcome : std::uint8_t { kEnded, kAborted, kLate };

  // Waits until `works` all-reduces have ended, until abort() or until the deadline. For the
  // caller's thread.
  Outcome wait(std::uint64_t works, const Deadline& deadline) const;

  // Records that `works` of the `submitted` all-reduces have ended. `begun` is the submission time
  // of the first one that had not ended at the last call. Called by the communication thread.
  void end(std::uint64_t works, std::uint64_t submitted, Clock::time_point begun);

  // Any thread may call the functions below.
  std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  bool is_aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }
  // Wakes the caller because of a failure. Its reason must have been stored before.
  void abort() noexcept;
  // The total time during which at least one all-reduce was submitted and had not ended, up to the
  // last moment when none was left.
  std::chrono::nanoseconds under_way() const noexcept;

 private:
  void wake() noexcept;

  std::atomic<std::uint64_t> ended_{0};
  std::atomic<bool> aborted_{false};
  std::atomic<std::uint32_t> changes_{0};  // the futex that the caller sleeps on
  std::atomic<std::int64_t> under_way_nanoseconds_{0};
  // Used by the communication thread: the current period with all-reduces in progress began at
  // period_begun_, or if there is none, the last one ended at period_ended_.
  bool is_under_way_ = false;
  Clock::time_point period_begun_;
  Clock::time_point period_ended_;
};

// Measures CommunicationTimes of a collective without a communication thread. One thread only.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Counts its own lifetime as exposed time: the caller waits for communication.
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

  // Measures a blocking operation: its own lifetime counts as exposed time, and, unless an
  // all-reduce is in progress, as time of communication.
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

  // begin() is called with every operation and starts the time of communication unless it runs.
  // end() is called when the last operation in progress ends.
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
