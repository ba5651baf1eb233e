// What the cgroups of this process allow it: containers and batch systems set limits there that
// the affinity of its threads does not show.
// Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1 of Linux: cpu.max,
// cpu.cfs_quota_us, memory.max, memory.limit_in_bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace syncopate {

// Returns how many CPUs' time the process may use at once; nothing without a limit. The files of
// the system are below `root`, as in all functions here.
std::optional<double> cgroup_cpus(const std::filesystem::path& root = "/");

// Returns the memory that the process can still get, in bytes: the machine's free memory, with
// caches that it can drop, or what its cgroups leave. 0 when unknown.
std::int64_t available_memory(const std::filesystem::path& root = "/");

// Returns how many CPUs the process can keep busy: those it may run on, limited by its cgroups; at
// least 1.
int usable_cpu_count();

}  // namespace syncopate
