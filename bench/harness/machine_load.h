// Who else uses the processor while we measure: the machine's busy time less our own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace syncopate::bench {

// User and system time so far. Of another process in ticks of 10 ms, and without what its children
// used.
double this_process_cpu_seconds();
// Throws FileError when it has ended.
double other_process_cpu_seconds(pid_t pid);

// One thread only.
class ForeignLoadMeter {
 public:
  // other_side: processes that belong to the measurement (the peer).
  // Throws FileError when /proc cannot be read.
  explicit ForeignLoadMeter(std::vector<pid_t> other_side);

  // Share of one core (2.0: two cores) that processes outside the measurement and the host took
  // since construction or the last call. /proc/stat counts in ticks of 10 ms: call no more often
  // than every second.
  double take();

 private:
  struct Reading {
    double busy_seconds = 0.0;  // all cores
    double own_seconds = 0.0;
    std::chrono::steady_clock::time_point when;
  };
  Reading read() const;

  std::vector<pid_t> other_side_;
  Reading last_;
};

}  // namespace syncopate::bench
