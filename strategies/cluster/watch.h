// Who has been silent for too long, as seen by an observer that may itself have been kept from
// running: time in which it did not run counts against nobody. Pure: it is told the time.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "models/base/deadline.h"

namespace syncopate {

class Watch {
 public:
  using Time = Deadline::Clock::time_point;

  // `count` peers, all heard of just now.
  Watch(int count, std::chrono::nanoseconds patience, Time now)
      : heard_(static_cast<std::size_t>(count), now), patience_(patience), expected_(now) {}

  // The observer runs, and will again after `wait` at the latest: before and after each time that
  // it sleeps (then with 0). When it comes later than it said, by more than kTolerance, it was
  // stopped: that time is forgiven to all, and returned (else 0).
  std::chrono::nanoseconds round(Time now, std::chrono::nanoseconds wait);

  void heard(int peer, Time now) { heard_[static_cast<std::size_t>(peer)] = now; }

  // The one that has been silent longest, when that is too long.
  std::optional<int> silent(Time now) const;
  // After this time somebody will have been silent for too long, if nothing is heard until then.
  std::chrono::nanoseconds time_left(Time now) const;

  static constexpr std::chrono::milliseconds kTolerance{500};

 private:
  std::vector<Time> heard_;  // at least one
  std::chrono::nanoseconds patience_;
  Time expected_;  // when the observer said that it would be back
};

}  // namespace syncopate
