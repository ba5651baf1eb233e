#include "tests/end_to_end/support/end_timer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <iostream>
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
// ran something else on its cores, summed over the cores. The kernel does not count this time as
// waiting. Source: proc(5), the eighth number of the line "cpu" of /proc/stat.
double total_stolen_seconds() {
  std::ifstream times("/proc/stat");
  std::string name;
  std::int64_t ticks = 0;
  times >> name;
  for (int i = 0; i < 8; ++i) times >> ticks;
  return times ? static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0.0;
}

}  // namespace

EndTimer::EndTimer()
    : begun_(std::chrono::steady_clock::now()),
      waited_us_(total_wait_us()),
      stolen_seconds_(total_stolen_seconds()) {}

double EndTimer::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

std::optional<std::string> EndTimer::starvation() const {
  const double stolen = (total_stolen_seconds() - stolen_seconds_) / seconds();
  if (stolen > kStarvedShare) {
    return "the host ran something else on a core in " + std::to_string(std::lround(100 * stolen)) +
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
