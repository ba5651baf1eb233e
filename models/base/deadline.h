// A point in time after which a blocking call gives up. Passed by value through every call that can
// block.
#pragma once

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <string>

namespace syncopate {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(std::chrono::nanoseconds timeout) {
    return Deadline(Clock::now() + timeout, timeout);
  }

  bool passed() const { return Clock::now() >= end_; }
  // Returns the time left; zero after the deadline has passed.
  std::chrono::nanoseconds remaining() const {
    return std::max(std::chrono::nanoseconds(0),
                    std::chrono::duration_cast<std::chrono::nanoseconds>(end_ - Clock::now()));
  }
  // Returns the time left as the timeout argument of poll(2). The time is rounded up, so that a
  // loop around poll() does not spin during the last millisecond.
  int remaining_milliseconds() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(remaining()).count();
    return static_cast<int>(std::min<std::int64_t>(left, INT_MAX));
  }
  // Returns the timeout that was passed to after(), for error messages.
  std::chrono::nanoseconds timeout() const { return timeout_; }

 private:
  Deadline(Clock::time_point end, std::chrono::nanoseconds timeout)
      : end_(end), timeout_(timeout) {}
  Clock::time_point end_;
  std::chrono::nanoseconds timeout_;
};

// Formats a time for messages, rounded to hundredths: "5 s", "3.5 s", "0.25 s".
std::string in_seconds(std::chrono::nanoseconds time);

}  // namespace syncopate
