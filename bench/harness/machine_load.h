// Measures how much processor time programs outside the measurement use: the busy time of the
// machine minus the time of the measured processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace syncopate::bench {

// Return the user and system time that a process has used so far. The time of another process has a
// resolution of 10 ms and leaves out its children.
double this_process_cpu_seconds();
// Throws FileError when the process has ended.
double other_process_cpu_seconds(pid_t pid);

// Measures foreign load between calls of take(). One thread only.
class ForeignLoadMeter {
 public:
  // `other_side` lists the processes that belong to the measurement, such as the peer. Throws
  // FileError when /proc cannot be read.
  explicit ForeignLoadMeter(std::vector<pid_t> other_side);

  // Returns the share of one core (2.0 means two cores) that the host and processes outside the
  // measurement used since construction or the last call. /proc/stat has a resolution of 10 ms, so
  // calls should be at least one second apart.
  double take();

 private:
  struct Reading {
    double busy_seconds = 0.0;  // The sum over all cores.
    double own_seconds = 0.0;
    std::chrono::steady_clock::time_point when;
  };
  Reading read() const;

  std::vector<pid_t> other_side_;
  Reading last_;
};

}  // namespace syncopate::bench
