#include "bench/harness/machine_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

double seconds_of_ticks(double ticks) { return ticks / static_cast<double>(sysconf(_SC_CLK_TCK)); }

// Time stolen by the host counts as busy, because the measured processes did not get it either.
// Source: proc(5), /proc/stat.
double machine_busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string label;
  std::array<double, 8> ticks{};  // The order is user nice system idle iowait irq softirq steal.
  file >> label;
  for (double& value : ticks) file >> value;
  if (!file) throw FileError("/proc/stat: expected a first line with 8 counts; is /proc mounted?");
  return seconds_of_ticks(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]);
}

}  // namespace

double this_process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Reads fields 14 and 15 of /proc/PID/stat. The name before them is in parentheses and may contain
// spaces.
double other_process_cpu_seconds(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos)
    throw FileError(path + ": cannot be read; has the process ended?");
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user_ticks = 0.0;
  double system_ticks = 0.0;
  fields >> user_ticks >> system_ticks;
  return seconds_of_ticks(user_ticks + system_ticks);
}

ForeignLoadMeter::ForeignLoadMeter(std::vector<pid_t> other_side)
    : other_side_(std::move(other_side)), last_(read()) {}

ForeignLoadMeter::Reading ForeignLoadMeter::read() const {
  Reading reading{machine_busy_seconds(), this_process_cpu_seconds(),
                  std::chrono::steady_clock::now()};
  for (const pid_t pid : other_side_) reading.own_seconds += other_process_cpu_seconds(pid);
  return reading;
}

double ForeignLoadMeter::take() {
  const Reading now = read();
  const double wall_seconds = std::chrono::duration<double>(now.when - last_.when).count();
  const double foreign_seconds =
      (now.busy_seconds - last_.busy_seconds) - (now.own_seconds - last_.own_seconds);
  last_ = now;
  return wall_seconds > 0.0 ? std::max(0.0, foreign_seconds / wall_seconds) : 0.0;
}

}  // namespace syncopate::bench
