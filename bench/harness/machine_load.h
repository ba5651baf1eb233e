// Measures what disturbs a benchmark on this machine: the processor time of programs outside the
// measurement, and where the host has placed two of our virtual cores.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::bench {

// Returns the user and system time that this process has used so far, without its descendants.
double this_process_cpu_seconds();
// Returns the user and system time that these processes and all their descendants have used so far,
// each counted once. A descendant that has ended counts if its parent has waited for its end. The
// resolution is 10 ms. Throws FileError when one of `pids` has ended.
double cpu_seconds_of_families(const std::vector<pid_t>& pids);

// The time of a machine's CPUs since it was started, summed over CPUs.
struct CpuTimes {
  // The time of processes, and the time that the host gave to other machines ("steal"), which the
  // measured processes did not get either.
  double busy_seconds = 0.0;
  double interrupt_seconds = 0.0;
  double total_seconds = 0.0;  // busy, in interrupts and idle
};
// Reads the text of /proc/stat. Counts these CPUs, or all if `cpus` is empty. The resolution is 10
// ms. Throws FileError if the text has no such CPU. Source: proc(5), /proc/stat.
CpuTimes cpu_times_in(const std::string& stat, const std::vector<int>& cpus = {});
std::string read_proc_stat();  // returns the text of /proc/stat

// Measures the share of CPU time that processes other than this one and its descendants take, on
// the CPUs that this process may use. One thread only.
class OthersMeter {
 public:
  // `read_stat` returns the text of /proc/stat; tests pass a made-up one. Throws FileError.
  explicit OthersMeter(std::function<std::string()> read_stat = read_proc_stat);

  // Returns the share, from 0 to 1, since construction. A descendant counts as this process's own
  // from the time at which its parent has waited for its end, so measure when all have ended.
  // Interrupts are left out: some are caused by the family's own messages, and kernels differ in
  // whether they charge them to the process. Throws FileError.
  double share() const;

 private:
  std::function<std::string()> read_stat_;
  std::vector<int> cpus_;
  CpuTimes first_;
  double own_seconds_;
};

// Measures foreign load between calls of take(): the busy time of the machine minus the time of the
// measured processes. One thread only.
class ForeignLoadMeter {
 public:
  // `other_side` lists the processes that belong to the measurement with all their descendants,
  // such as the peer. Throws FileError when /proc cannot be read.
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

// Measures how fast one core passes 1 MB messages to another through a ring in shared memory
// (copied in and copied out). Two virtual cores may share a last-level cache or not, which is not
// visible from inside a guest; the host changes it without notice, and the speed of the same
// program then differs by up to a factor of two. Returns the best of a few short tries, in GB/s of
// payload; takes about 50 ms. Returns nullopt on a machine with one core.
std::optional<double> measure_core_ring();

// Returns "near" (the cores share a last-level cache) or "far". The threshold lies between the two
// values seen on a Zen 4 guest, 13.7 and 2.2 GB/s. Other processors have other values, so reports
// print the number too.
std::string_view placement_name(double ring_gb_per_s) noexcept;

}  // namespace syncopate::bench
