// Measures how long the tasks of a job take to end after one of them was lost, and whether the
// machine let them run in that time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::test {

// Measures from its construction. One thread only.
class EndTimer {
 public:
  EndTimer();

  double seconds() const;
  // Returns why the machine counts as starved since the construction, such as "threads waited for
  // a core in 63 % of the time". Returns nothing when the machine was not starved, or where the
  // kernel does not measure it.
  std::optional<std::string> starvation() const;

 private:
  std::chrono::steady_clock::time_point begun_;
  // What the kernel had counted at the construction.
  std::optional<std::int64_t> waited_us_;
  std::vector<double> stolen_seconds_;  // by core
};

// Expects that the tasks of a job have ended in time: a dead task ends all others within 5 s on one
// machine that is not starved, and within 15 s otherwise. When more than 5 s have passed on a
// starved machine, the reason is printed and 15 s are the limit.
void expect_ended_in_time(const EndTimer& since_loss);

}  // namespace syncopate::test
