// Measures what disturbs a benchmark on this machine: the CPU time of programs outside the
// measurement, and the distance of two virtual cores on the host.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::bench {

// Returns the user and system time in seconds that this process has used so far, without its
// descendants.
double this_process_cpu_seconds();
// Returns the user and system time in seconds that the processes `pids` and all their descendants
// have used so far; each process counts once. A descendant that has ended counts if its parent has
// waited for its end. The resolution is 10 ms. Throws FileError when one of `pids` has ended.
double cpu_seconds_of_families(const std::vector<pid_t>& pids);

// The time of a machine's CPUs since the machine was started, summed over CPUs.
struct CpuTimes {
  // The time of processes. Includes the time that the host gave to other machines ("steal"), which
  // the measured processes did not get either.
  double busy_seconds = 0.0;
  double interrupt_seconds = 0.0;
  double total_seconds = 0.0;  // busy, interrupt and idle time
};
// Returns the times in the text of /proc/stat, summed over `cpus`, or over all CPUs if `cpus` is
// empty. The resolution is 10 ms. Throws FileError if the text lacks one of `cpus`. Source:
// proc(5), /proc/stat.
CpuTimes cpu_times_in(const std::string& stat, const std::vector<int>& cpus = {});
std::string read_proc_stat();  // returns the text of /proc/stat

// Measures the share of CPU time that processes other than this one and its descendants take, on
// the CPUs that this process may use. One thread only.
class OthersMeter {
 public:
  // Begins the measurement. read_stat: a function that returns the text of /proc/stat; tests pass
  // another function. Throws FileError.
  explicit OthersMeter(std::function<std::string()> read_stat = read_proc_stat);

  // Returns the share of CPU time, from 0 to 1, that other processes took since construction. The
  // time of a descendant counts for this process only after its parent has waited for its end, so
  // call this when all descendants have ended. The time of interrupts is left out, because the
  // messages of this process and its descendants cause some interrupts, and kernels differ in
  // whether they charge interrupts to a process. Throws FileError.
  double share() const;

 private:
  std::function<std::string()> read_stat_;
  std::vector<int> cpus_;
  CpuTimes first_;
  double own_seconds_;
};

// Measures the foreign load between calls of take(). The foreign load is the busy time of the
// machine's CPUs minus the CPU time of the measured processes. One thread only.
class ForeignLoadMeter {
 public:
  // Begins the measurement. other_side: the processes, besides this process, that are measured,
  // such as the peer; all descendants of these processes are measured, too. Throws FileError when
  // /proc cannot be read.
  explicit ForeignLoadMeter(std::vector<pid_t> other_side);

  // Returns the share of one core (2.0 means two cores) that the host and processes outside the
  // measurement used since construction or the last call. /proc/stat has a resolution of 10 ms, so
  // calls should be at least one second apart.
  double take();

 private:
  struct Reading {
    double busy_seconds = 0.0;  // sum over all cores
    double own_seconds = 0.0;
    std::chrono::steady_clock::time_point when;
  };
  Reading read() const;

  std::vector<pid_t> other_side_;
  Reading last_;
};

// Measures how fast one core passes messages of 1 MB to another core through a ring in shared
// memory, with a copy into the ring and a copy out of it. Two virtual cores may or may not share a
// last-level cache, which a guest cannot see. The host changes this without notice, and the speed
// of a program then differs by up to a factor of two. Returns the best of a few short measurements,
// in GB/s of payload; takes about 50 ms. Returns nullopt on a machine with one core.
std::optional<double> measure_core_ring();

// Returns "near" if ring_gb_per_s, the result of measure_core_ring(), shows that the cores share a
// last-level cache; otherwise "far". The threshold lies between the two values measured on a Zen 4
// guest, 13.7 and 2.2 GB/s. Other processors have other values, so reports also print the number.
std::string_view placement_name(double ring_gb_per_s) noexcept;

}  // namespace syncopate::bench
