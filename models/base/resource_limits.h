// The limits that cgroups set for this process. Containers and batch systems limit CPU time, memory
// and threads by cgroups, which CPU affinity does not show.
// Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1 of Linux: cpu.max,
// cpu.cfs_quota_us, memory.max, memory.limit_in_bytes, memory.swap.max,
// memory.memsw.limit_in_bytes, memory.events, memory.oom_control, pids.max.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace syncopate {

// Returns the CPU time that the process may use, in CPUs (1.5: 1.5 s per second); nullopt without a
// limit. root: here and in the functions below, the root of the file system; tests pass another
// folder.
std::optional<double> cgroup_cpus(const std::filesystem::path& root = "/");

// Returns the swap space that the process can still use, in bytes: the smaller of the machine's
// free swap space and what the cgroups leave.
std::int64_t free_swap(const std::filesystem::path& root = "/");

// Returns the memory that the process can still get, in bytes: the smaller of the machine's
// available memory and what the cgroups leave. Caches that the kernel can drop count as available.
// Returns 0 if unknown.
std::int64_t available_memory(const std::filesystem::path& root = "/");

// Returns the memory and swap space that the machine has, or that the cgroups of this process allow
// if that is less, in bytes. All processes of the machine or the cgroup share this memory. Returns
// 0 if unknown.
std::int64_t total_memory(const std::filesystem::path& root = "/");

// A memory limit of a cgroup.
struct MemoryLimit {
  std::int64_t bytes = 0;
  std::int64_t used_bytes = 0;  // excluding pages of files that the kernel can drop
};
// Returns the memory limit of the cgroups that leaves least memory; nullopt without a limit.
std::optional<MemoryLimit> cgroup_memory(const std::filesystem::path& root = "/");

// Returns the lowest limit of the cgroups on the number of processes and threads; nullopt without a
// limit.
std::optional<std::int64_t> cgroup_threads(const std::filesystem::path& root = "/");

// Returns how many processes the kernel has ended for lack of memory in the memory cgroup of this
// process, or on the machine if the process has no memory cgroup.
std::int64_t count_memory_kills(const std::filesystem::path& root = "/");

// How many CPUs the process can keep busy, by affinity and by CPU quota.
struct CpuLimits {
  int affinity = 1;  // the CPUs that the calling thread may run on
  // The lowest CPU quota of the cgroups, in CPUs, as cgroup_cpus() returns it.
  std::optional<double> quota;

  // Returns the quota rounded up, so that a fraction of a CPU is used, too. At least 1; a very
  // large number without a quota.
  int of_quota() const noexcept;
  // Returns the smaller of `affinity` and of_quota(). All code that needs the number of CPUs calls
  // usable().
  int usable() const noexcept { return std::min(affinity, of_quota()); }
  bool is_lowered_by_quota() const noexcept { return usable() < affinity; }
};
CpuLimits cpu_limits(const std::filesystem::path& root = "/");
// Returns text such as "8 CPUs" or "2 of 64 CPUs (CPU quota 1.5 of the cgroup)".
std::string describe(const CpuLimits& limits);

// Returns cpu_limits().usable().
int usable_cpu_count();

}  // namespace syncopate
