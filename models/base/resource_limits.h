// What the cgroups of this process allow it: containers and batch systems set limits there that
// the affinity of its threads does not show.
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

// Returns how many CPUs' time the process may use at once; nothing without a limit. The files of
// the system are below `root`, as in all functions here.
std::optional<double> cgroup_cpus(const std::filesystem::path& root = "/");

// Returns the swap space that the process can still use, in bytes: what the machine has free, or
// what its cgroups leave.
std::int64_t free_swap(const std::filesystem::path& root = "/");

// Returns the memory that the process can still get, in bytes: the machine's free memory, with
// caches that it can drop, or what its cgroups leave. 0 when unknown.
std::int64_t available_memory(const std::filesystem::path& root = "/");

// Returns the memory that the processes of the machine, or of the tightest cgroup of this process,
// can have together, in bytes, with swap space. 0 when unknown.
std::int64_t total_memory(const std::filesystem::path& root = "/");

// The tightest memory limit of the cgroups: the one that leaves least. Nothing without a limit.
struct MemoryLimit {
  std::int64_t bytes = 0;
  std::int64_t used_bytes = 0;  // without the pages of files that the kernel can drop
};
std::optional<MemoryLimit> cgroup_memory(const std::filesystem::path& root = "/");

// Returns the least limit of the cgroups on processes and threads; nothing without one.
std::optional<std::int64_t> cgroup_threads(const std::filesystem::path& root = "/");

// Returns how many processes the kernel has ended for want of memory, in the memory cgroup of this
// process or, where it has none, on the machine.
std::int64_t count_memory_kills(const std::filesystem::path& root = "/");

// How many CPUs the process can keep busy, and which limit says so.
struct CpuLimits {
  int affinity = 1;             // the CPUs that the calling thread may run on
  std::optional<double> quota;  // CPUs' time of the tightest cgroup; nothing without a quota

  // Returns the quota rounded up, so that its fraction is used too: at least 1, and very many
  // without a quota.
  int of_quota() const noexcept;
  // Returns the smaller of `affinity` and of_quota(). All code that needs a number of CPUs uses
  // this one.
  int usable() const noexcept { return std::min(affinity, of_quota()); }
  bool is_lowered_by_quota() const noexcept { return usable() < affinity; }
};
CpuLimits cpu_limits(const std::filesystem::path& root = "/");
// Returns text such as "8 CPUs" or "2 of 64 CPUs (CPU quota 1.5 of the cgroup)".
std::string describe(const CpuLimits& limits);

// Returns cpu_limits().usable().
int usable_cpu_count();

}  // namespace syncopate
