// Until when somebody is willing to wait. Passed down by value: whoever waits has one.
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

  static Deadline after(std::chrono::nanoseconds patience) {
    return Deadline(Clock::now() + patience, patience);
  }

  bool passed() const { return Clock::now() >= end_; }
  // Zero when it has passed.
  std::chrono::nanoseconds remaining() const {
    return std::max(std::chrono::nanoseconds(0),
                    std::chrono::duration_cast<std::chrono::nanoseconds>(end_ - Clock::now()));
  }
  // As poll(2) wants it: rounded up, so that a loop does not spin through the last millisecond.
  int remaining_milliseconds() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(remaining()).count();
    return static_cast<int>(std::min<std::int64_t>(left, INT_MAX));
  }
  // How long it was at first, for messages.
  std::chrono::nanoseconds patience() const { return patience_; }

 private:
  Deadline(Clock::time_point end, std::chrono::nanoseconds patience)
      : end_(end), patience_(patience) {}
  Clock::time_point end_;
  std::chrono::nanoseconds patience_;
};

// "5 s", "3.5 s", "0.25 s": for messages, rounded to hundredths.
std::string in_seconds(std::chrono::nanoseconds time);

}  // namespace syncopate
