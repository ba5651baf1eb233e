// Detects peers that have been silent for too long, and distributes the failure of a task within
// this process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "models/base/deadline.h"

namespace syncopate {

// Reports the peer whose last message is too old. The observing thread may itself be stopped, for
// example by SIGSTOP or for want of a CPU; such time does not count as silence of the peers. Pure:
// the caller passes the time. One thread only.
class FailureDetector {
 public:
  using Time = Deadline::Clock::time_point;

  // Observes `count` peers, at least 1, whose last messages count as received at `now`.
  FailureDetector(int count, std::chrono::nanoseconds timeout, Time now)
      : last_message_times_(static_cast<std::size_t>(count), now),
        timeout_(timeout),
        expected_(now) {}

  // The observing thread calls update() before each sleep with the longest duration of the sleep,
  // and after the sleep with 0. When it runs later than announced, by more than kTolerance, the
  // delay is added to the time of every peer's last message. Returns that delay, else 0.
  std::chrono::nanoseconds update(Time now, std::chrono::nanoseconds sleep);

  void on_message(int peer, Time now) { last_message_times_[static_cast<std::size_t>(peer)] = now; }

  // Returns the peer that has been silent longest, if its silence exceeds the timeout.
  std::optional<int> silent(Time now) const;
  // Returns the time until silent() would return a peer, if no message arrives.
  std::chrono::nanoseconds time_left(Time now) const;

  static constexpr std::chrono::milliseconds kTolerance{500};

 private:
  std::vector<Time> last_message_times_;
  std::chrono::nanoseconds timeout_;
  Time expected_;  // when update() announced that the observer runs again
};

// Stores the first failure of a task of the job and passes it to one subscriber, once.
// Thread-safe.
class FailureNotice {
 public:
  using Callback = std::function<void(const std::string& reason)>;

  // Stores the failure's reason unless one is stored. Calls the subscriber without holding a lock;
  // exceptions of the subscriber pass through.
  void set(const std::string& reason);
  std::optional<std::string> get() const;

  // Replaces the subscriber of the failure, and calls it at once if a reason is set. After this
  // returns, the former subscriber is not running and is never called, except that a callback may
  // call subscribe() itself.
  void subscribe(const Callback& callback);

 private:
  void set_returned();

  mutable std::mutex mutex_;
  std::condition_variable returned_;
  // The stored failure and its subscriber, guarded by mutex_.
  std::optional<std::string> reason_;
  Callback callback_;
  std::thread::id caller_;  // the thread that runs a callback
};

}  // namespace syncopate
