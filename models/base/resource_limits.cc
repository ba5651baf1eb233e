#include "models/base/resource_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/affinity.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

// Returns the first numbers in a file; none for a file that does not exist or says "max".
std::vector<double> numbers_in(const fs::path& file) {
  std::ifstream in(file);
  std::vector<double> numbers;
  for (double number = 0.0; in >> number;) numbers.push_back(number);
  return numbers;
}

// Returns the number behind a name in a file with one of both a line.
std::optional<std::int64_t> named_number(const fs::path& file, std::string_view name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string found;
    std::int64_t number = 0;
    if (words >> found >> number && found == name) return number;
  }
  return std::nullopt;
}

// Returns the folders of a controller's cgroups that this process is in, from its own up. The
// limits of all of them hold. In a container the path of the cgroup may be the host's path, which
// does not exist there.
std::vector<fs::path> cgroups(const fs::path& root, std::string_view controller) {
  std::vector<fs::path> folders;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id;
    std::string controllers;
    std::string path;
    std::getline(fields, id, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    if (path.empty() || path.front() != '/') continue;
    const bool is_unified = controllers.empty();
    std::istringstream names(controllers);
    bool has_controller = is_unified;
    for (std::string name; std::getline(names, name, ',');) {
      has_controller = has_controller || name == controller;
    }
    if (!has_controller) continue;
    const fs::path mounts = root / "sys/fs/cgroup";
    fs::path top = mounts / (is_unified ? "" : controllers);
    // A container may mount the controllers "cpu,cpuacct" under one of their names only.
    std::error_code unseen;
    if (!fs::exists(top, unseen)) top = mounts / controller;
    for (fs::path own = fs::path(path).relative_path(); !own.empty(); own = own.parent_path()) {
      folders.push_back(top / own);
    }
    folders.push_back(top);
  }
  return folders;
}

// Returns the least of some limits.
template <typename T>
std::optional<T> least(std::optional<T> one, T other) {
  return one ? std::min(*one, other) : other;
}

// The first version of cgroups has a huge number in place of no limit.
constexpr double kNoLimit = 1e18;

// Returns the only number in a file; nothing for a file that does not exist or says "max".
std::optional<double> limit_in(const fs::path& file) {
  const std::vector<double> numbers = numbers_in(file);
  if (numbers.size() != 1 || numbers[0] >= kNoLimit) return std::nullopt;
  return numbers[0];
}

// Returns the memory limits of the cgroups that this process is in.
std::vector<MemoryLimit> memory_limits(const fs::path& root) {
  std::vector<MemoryLimit> limits;
  for (const fs::path& folder : cgroups(root, "memory")) {
    const bool is_first = !fs::exists(folder / "memory.max");
    const auto limit = limit_in(folder / (is_first ? "memory.limit_in_bytes" : "memory.max"));
    const auto used = limit_in(folder / (is_first ? "memory.usage_in_bytes" : "memory.current"));
    if (!limit || !used) continue;
    // The first version counts the groups below under separate names.
    std::int64_t droppable = 0;
    for (const std::string name : {"inactive_file", "active_file"}) {
      droppable +=
          named_number(folder / "memory.stat", is_first ? "total_" + name : name).value_or(0);
    }
    const std::int64_t in_use = static_cast<std::int64_t>(*used) - droppable;
    limits.push_back({static_cast<std::int64_t>(*limit), std::max(std::int64_t{0}, in_use)});
  }
  return limits;
}

// Returns the limits on swap space of the cgroups that this process is in. The first version of
// cgroups limits the sum of memory and swap space.
std::vector<MemoryLimit> swap_limits(const fs::path& root) {
  std::vector<MemoryLimit> limits;
  for (const fs::path& folder : cgroups(root, "memory")) {
    std::optional<double> limit = limit_in(folder / "memory.swap.max");
    std::optional<double> used = limit_in(folder / "memory.swap.current");
    if (!limit) {
      const auto memory = limit_in(folder / "memory.limit_in_bytes");
      const auto both = limit_in(folder / "memory.memsw.limit_in_bytes");
      if (!memory || !both) continue;
      limit = *both - *memory;
      used = limit_in(folder / "memory.memsw.usage_in_bytes").value_or(0.0) -
             limit_in(folder / "memory.usage_in_bytes").value_or(0.0);
    }
    limits.push_back(
        {static_cast<std::int64_t>(*limit), static_cast<std::int64_t>(used.value_or(0.0))});
  }
  return limits;
}

}  // namespace

std::optional<double> cgroup_cpus(const fs::path& root) {
  std::optional<double> cpus;
  for (const fs::path& folder : cgroups(root, "cpu")) {
    std::vector<double> quota = numbers_in(folder / "cpu.max");  // quota and period
    if (quota.empty()) {
      quota = numbers_in(folder / "cpu.cfs_quota_us");  // -1: no limit
      const std::vector<double> period = numbers_in(folder / "cpu.cfs_period_us");
      quota.insert(quota.end(), period.begin(), period.end());
    }
    if (quota.size() == 2 && quota[0] > 0.0 && quota[1] > 0.0) {
      cpus = least(cpus, quota[0] / quota[1]);
    }
  }
  return cpus;
}

std::optional<MemoryLimit> cgroup_memory(const fs::path& root) {
  std::optional<MemoryLimit> tightest;
  for (const MemoryLimit& found : memory_limits(root)) {
    if (!tightest || found.bytes - found.used_bytes < tightest->bytes - tightest->used_bytes) {
      tightest = found;
    }
  }
  return tightest;
}

std::int64_t available_memory(const fs::path& root) {
  std::optional<std::int64_t> bytes;
  if (const auto free_kib = named_number(root / "proc/meminfo", "MemAvailable:")) {
    bytes = 1024 * *free_kib;
  }
  if (const std::optional<MemoryLimit> limit = cgroup_memory(root)) {
    bytes = least(bytes, std::max(std::int64_t{0}, limit->bytes - limit->used_bytes));
  }
  return bytes.value_or(0);
}

std::int64_t free_swap(const fs::path& root) {
  std::int64_t bytes = 1024 * named_number(root / "proc/meminfo", "SwapFree:").value_or(0);
  for (const MemoryLimit& limit : swap_limits(root)) {
    bytes = std::min(bytes, std::max(std::int64_t{0}, limit.bytes - limit.used_bytes));
  }
  return bytes;
}

std::int64_t total_memory(const fs::path& root) {
  std::optional<std::int64_t> bytes;
  if (const auto kib = named_number(root / "proc/meminfo", "MemTotal:")) bytes = 1024 * *kib;
  for (const MemoryLimit& limit : memory_limits(root)) bytes = least(bytes, limit.bytes);
  if (!bytes) return 0;
  std::int64_t swap = 1024 * named_number(root / "proc/meminfo", "SwapTotal:").value_or(0);
  for (const MemoryLimit& limit : swap_limits(root)) swap = std::min(swap, limit.bytes);
  return *bytes + swap;
}

std::optional<std::int64_t> cgroup_threads(const fs::path& root) {
  std::optional<std::int64_t> threads;
  for (const fs::path& folder : cgroups(root, "pids")) {
    const std::vector<double> limit = numbers_in(folder / "pids.max");
    if (limit.size() == 1) threads = least(threads, static_cast<std::int64_t>(limit[0]));
  }
  return threads;
}

std::int64_t count_memory_kills(const fs::path& root) {
  for (const fs::path& folder : cgroups(root, "memory")) {
    for (const char* file : {"memory.events", "memory.oom_control"}) {
      if (const auto kills = named_number(folder / file, "oom_kill")) return *kills;
    }
  }
  return named_number(root / "proc/vmstat", "oom_kill").value_or(0);
}

int CpuLimits::of_quota() const noexcept {
  constexpr double kMost = 1 << 20;
  return static_cast<int>(std::clamp(std::ceil(quota.value_or(kMost)), 1.0, kMost));
}

CpuLimits cpu_limits(const fs::path& root) {
  return {.affinity = static_cast<int>(usable_cpus().size()), .quota = cgroup_cpus(root)};
}

std::string describe(const CpuLimits& limits) {
  const auto text = [](int cpus) { return fmt::format("{} CPU{}", cpus, cpus == 1 ? "" : "s"); };
  if (!limits.is_lowered_by_quota()) return text(limits.affinity);
  return fmt::format("{} of {} (CPU quota {:.3g} of the cgroup)", limits.usable(),
                     text(limits.affinity), *limits.quota);
}

int usable_cpu_count() { return cpu_limits().usable(); }

}  // namespace syncopate
