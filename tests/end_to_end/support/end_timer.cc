#include "tests/end_to_end/support/end_timer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace syncopate::test {
namespace {

constexpr double kLimitSeconds = 5.0;
constexpr double kLimitSecondsWhenStarved = 15.0;
// The machine counts as starved when threads waited for a core, or the host of a virtual machine
// took one away, in a larger share of the time. The tasks of a test cause less: after a loss they
// wait for messages.
constexpr double kStarvedShare = 0.2;

// Returns for how long, in microseconds since the start of the machine, at least one thread was
// ready to run and had no core. Source: Documentation/accounting/psi.rst of Linux, the line
// "some avg10=0.12 avg60=0.05 avg300=0.01 total=11220657".
std::optional<std::int64_t> total_wait_us() {
  std::ifstream pressure("/proc/pressure/cpu");
  std::string line;
  if (!std::getline(pressure, line)) return std::nullopt;
  const std::string name = "total=";
  const std::size_t at = line.find(name);
  if (at == std::string::npos) return std::nullopt;
  return std::stoll(line.substr(at + name.size()));
}

// Returns for how long, in seconds since the start of the machine, the host of a virtual machine
// ran something else on each core. The kernel does not count this time as waiting. Source: proc(5),
// the eighth number of the lines "cpu0", "cpu1", ... of /proc/stat.
std::vector<double> stolen_seconds() {
  std::ifstream times("/proc/stat");
  std::vector<double> seconds;
  std::string line;
  std::getline(times, line);  // the sum over the cores
  while (std::getline(times, line) && line.starts_with("cpu")) {
    std::istringstream fields(line);
    std::string name;
    std::int64_t ticks = 0;
    fields >> name;
    for (int i = 0; i < 8; ++i) fields >> ticks;
    seconds.push_back(static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK)));
  }
  return seconds;
}

}  // namespace

EndTimer::EndTimer()
    : begun_(std::chrono::steady_clock::now()),
      waited_us_(total_wait_us()),
      stolen_seconds_(stolen_seconds()) {}

double EndTimer::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

std::optional<std::string> EndTimer::starvation() const {
  const std::vector<double> stolen = stolen_seconds();
  for (std::size_t core = 0; core < std::min(stolen.size(), stolen_seconds_.size()); ++core) {
    const double share = (stolen[core] - stolen_seconds_[core]) / seconds();
    if (share <= kStarvedShare) continue;
    return "the host ran something else on a core in " + std::to_string(std::lround(100 * share)) +
           " % of the time";
  }
  const std::optional<std::int64_t> now = total_wait_us();
  if (!waited_us_ || !now) return std::nullopt;
  const double share = 1e-6 * static_cast<double>(*now - *waited_us_) / seconds();
  if (share <= kStarvedShare) return std::nullopt;
  return "threads waited for a core in " + std::to_string(std::lround(100.0 * share)) +
         " % of the time";
}

void expect_ended_in_time(const EndTimer& since_loss) {
  const double seconds = since_loss.seconds();
  if (seconds <= kLimitSeconds) return;
  const std::optional<std::string> starvation = since_loss.starvation();
  if (!starvation) {
    ADD_FAILURE() << "the tasks ended after " << seconds << " s, expected at most " << kLimitSeconds
                  << " s on a machine that is not starved";
    return;
  }
  std::cerr << "the limit is " << kLimitSecondsWhenStarved << " s, because " << *starvation << "\n";
  EXPECT_LE(seconds, kLimitSecondsWhenStarved) << *starvation;
}

}  // namespace syncopate::test
